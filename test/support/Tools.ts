import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Postgres from "./postgres/Programs.js"

const onPath = (name: string): boolean =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name)))

interface Tool {
  readonly has: () => boolean
  readonly lacks: string
  readonly remedy: string
  /** Test files that need the tool. */
  readonly files: ReadonlyArray<string>
}

/** Programs that tests start and that a machine may lack. */
const tools = {
  PostgreSQL: {
    has: () => Postgres.folder() !== undefined,
    lacks: "initdb and postgres",
    remedy: "apt-get install postgresql",
    files: [
      "test/adapters/cluster/*.test.ts",
      "test/adapters/sql/postgres/Postgres.test.ts",
      "test/adapters/sql/postgres/*.test.ts",
      "test/scenarios/docs/operating.test.ts",
      "test/scenarios/faults.test.ts",
      "test/scenarios/replicas/*.test.ts",
      "test/scenarios/store/*.test.ts"
    ]
  },
  Redis: {
    has: () => onPath("redis-server"),
    lacks: "redis-server",
    remedy: "apt-get install redis-server",
    files: [
      "test/adapters/redis/*.test.ts",
      "test/hosts/rateLimit.test.ts",
      "test/hosts/replicas.test.ts",
      "test/scenarios/replicas/*.test.ts"
    ]
  },
  SoftHSM2: {
    has: () => onPath("softhsm2-util"),
    lacks: "softhsm2-util",
    remedy: "apt-get install softhsm2",
    files: [
      "test/adapters/keys/pkcs11/{KeyProvider,Losses,Pin}.test.ts",
      "test/hosts/cli/commands/signers.test.ts",
      "test/scenarios/hsm.test.ts"
    ]
  },
  pkcs11js: {
    has: () =>
      existsSync(
        fileURLToPath(new URL("../../node_modules/pkcs11js/build/Release/pkcs11.node", import.meta.url))
      ),
    lacks: "its compiled binding",
    remedy: "npm run build --prefix node_modules/pkcs11js, with python3, make and g++",
    files: [
      "test/adapters/keys/pkcs11/{KeyProvider,Losses,Pin,TokenFailure}.test.ts",
      "test/hosts/cli/commands/signers.test.ts",
      "test/scenarios/hsm.test.ts"
    ]
  },
  "g++": {
    has: () => spawnSync("g++", ["--version"]).status === 0,
    lacks: "g++",
    remedy: "apt-get install g++",
    files: ["test/adapters/keys/pkcs11/{Losses,Pin}.test.ts"]
  },
  Chromium: {
    has: () => existsSync(process.env.CHROMIUM ?? "/usr/bin/chromium"),
    lacks: "chromium (CHROMIUM=/path/to/it)",
    remedy: "apt-get install chromium",
    files: ["test/scenarios/browser/*.test.ts"]
  },
  systemd: {
    has: () => onPath("systemd-analyze"),
    lacks: "systemd-analyze",
    remedy: "apt-get install systemd",
    files: []
  },
  Go: {
    has: () =>
      onPath("go") &&
      ["github.com/Masterminds/sprig", "golang.org/x/oauth2", "sigs.k8s.io/yaml"].every((library) =>
        existsSync(`/usr/share/gocode/src/${library}`)
      ),
    lacks: "go with its libraries for charts and OAuth",
    remedy:
      "apt-get install golang-go golang-github-masterminds-sprig-dev golang-golang-x-oauth2-dev golang-k8s-sigs-yaml-dev",
    files: ["test/sdk/sdk.test.ts"]
  },
  "OpenAPI Generator": {
    has: () =>
      onPath("javac") &&
      existsSync(
        fileURLToPath(new URL("../../node_modules/@openapitools/openapi-generator-cli", import.meta.url))
      ),
    lacks: "javac or the generator's package",
    remedy: "apt-get install default-jdk-headless, npm ci",
    files: ["test/sdk/sdk.test.ts"]
  },
  Python: {
    has: () => spawnSync("/usr/bin/python3", ["-c", "import certifi, dateutil, six, urllib3"]).status === 0,
    lacks: "/usr/bin/python3 with certifi, dateutil, six and urllib3",
    remedy: "apt-get install python3-certifi python3-dateutil python3-six python3-urllib3",
    files: ["test/sdk/sdk.test.ts"]
  },
  tmpfs: {
    has: () =>
      spawnSync("sh", ["-c", 'd=$(mktemp -d) && mount -t tmpfs tmpfs "$d" && umount "$d" && rmdir "$d"'])
        .status === 0,
    lacks: "the right to mount a tmpfs",
    remedy: "run the tests as root",
    files: []
  },
  promtool: {
    has: () => onPath("promtool"),
    lacks: "promtool",
    remedy: "apt-get install prometheus",
    files: []
  },
  curl: {
    has: () => onPath("curl"),
    lacks: "curl",
    remedy: "apt-get install curl",
    files: []
  }
} satisfies Readonly<Record<string, Tool>>

/** With `CASTELLAN_TEST_COMPLETE`, a skipped test fails. */
const mustHaveAll = process.env.CASTELLAN_TEST_COMPLETE !== undefined

const reason = (name: string, { lacks, remedy }: Tool): string => `${name}: ${lacks} not found; ${remedy}`

/** Test files skipped for a missing tool, each with the reason. */
export const leftOut = (): ReadonlyArray<{ readonly files: string; readonly why: string }> => {
  const found = Object.entries(tools).flatMap(([name, tool]: [string, Tool]) =>
    tool.has() ? [] : tool.files.map((files) => ({ files, why: reason(name, tool) }))
  )
  if (mustHaveAll && found[0] !== undefined) throw new Error(found[0].why)
  return found
}

export const has = (name: keyof typeof tools): boolean => tools[name].has()

/** Skips the running test if the machine lacks the tool. */
export const need = async (name: keyof typeof tools): Promise<void> => {
  const tool: Tool = tools[name]
  if (tool.has()) return
  const { TestRunner } = await import("vitest")
  const test = TestRunner.getCurrentTest()
  if (mustHaveAll || test === undefined) throw new Error(reason(name, tool))
  test.context.skip(reason(name, tool))
}
