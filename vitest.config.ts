import { statfsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { configDefaults, defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import * as Tools from "./test/support/Tools.js"

const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url))

/** Bytes free in a folder; 0 where there is none. */
const room = (folder: string): number => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return 0
  }
}

// Databases of tests lie in memory where it has room. Tests kill processes, after which memory holds as much as a disk.
if (room("/dev/shm") > 4e9) process.env.TMPDIR ??= "/dev/shm"

/** Minutes in all, or other programs beside them: `npm run test:all`. */
const slow = [
  "test/adapters/json-rpc/memory.test.ts",
  "test/commands.test.ts",
  "test/faults/breaches.test.ts",
  "test/hosts/cli/commands/{accounts,signers}.test.ts",
  "test/hosts/http/{fuzz,hold}.test.ts",
  "test/hosts/http/server/Server.test.ts",
  "test/hosts/rateLimit.test.ts",
  "test/hosts/replicas.test.ts",
  "test/ports/journal/Durability.test.ts",
  "test/ports/webhooks/Deliver.test.ts",
  "test/scenarios/browser/*.test.ts",
  "test/scenarios/chain/events.test.ts",
  "test/scenarios/dev.test.ts",
  "test/scenarios/docs/*.test.ts",
  "test/scenarios/engine/{backlog,databaseAway,foreign,foundLandings,nodes,outage,payout,restored,schedules,senseless,silentNode,transports}.test.ts",
  "test/scenarios/faults.test.ts",
  "test/scenarios/http/expiry.test.ts",
  "test/scenarios/lens/{bundles,figures,measures}.test.ts",
  "test/scenarios/operator/inspection.test.ts",
  "test/scenarios/process.test.ts",
  "test/scenarios/remote/{lives,remote}.test.ts",
  "test/scenarios/replicas/*.test.ts",
  "test/scenarios/secrets.test.ts",
  "test/scenarios/store/*.test.ts",
  "test/sdk/sdk.test.ts",
  "test/solidity/live/erc7562.test.ts"
]
const unit = ["test/client/**/*.test.ts", "test/domain/**/*.test.ts", "test/application/**/*.test.ts"]
const ports = ["test/ports/**/*.test.ts", "test/adapters/**/*.test.ts"]
const all = ["test/**/*.test.ts"]

const leftOut = Tools.leftOut().map(({ files }) => files)

const project = (name: string, include: Array<string>, exclude: ReadonlyArray<string>) => ({
  extends: true as const,
  test: { name, include, exclude: [...configDefaults.exclude, ...leftOut, ...exclude] }
})

/** The longest file first: it waits for programs of its own, beside which the others run. */
class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const place = ({ moduleId }: TestSpecification) => (moduleId.endsWith("/test/commands.test.ts") ? 0 : 1)
    return (await super.sort(files)).sort((one, other) => place(one) - place(other))
  }
}

export default defineConfig({
  // The package under its own name, as programs that embed it write it.
  resolve: {
    alias: [
      { find: /^castellan$/, replacement: source("index.ts") },
      { find: /^castellan\/client$/, replacement: source("client/Client.ts") },
      { find: /^castellan\/http$/, replacement: source("hosts/library/Http.ts") },
      { find: /^castellan\/passkeys$/, replacement: source("client/Passkeys.ts") },
      { find: /^castellan\/promise$/, replacement: source("hosts/library/Promise.ts") }
    ]
  },
  test: {
    projects: [
      project("unit", unit, slow),
      project("ports", ports, slow),
      project("service", all, [...unit, ...ports, ...slow]),
      project("slow", slow, [])
    ],
    // Setup files one after the other: each undoes and wraps what those before it have left as it was.
    sequence: { setupFiles: "list", sequencer: LongestFirst },
    setupFiles: ["test/support/setup.ts", "test/support/secrets/setup.ts", "test/support/http/setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    // A process loads the libraries once for many files.
    isolate: false,
    maxWorkers: 3,
    silent: "passed-only",
    reporters: ["dot", "./test/support/Counts.ts"]
  }
})
