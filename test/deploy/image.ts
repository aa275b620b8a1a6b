import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Port from "../support/process/Port.js"

/**
 * `npm run test:image`: the steps of deploy/Dockerfile in empty folders, without an engine: its context, its RUN
 * and COPY lines, its command with its environment, its health check, the metrics, and its signal to stop.
 */

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "castellan-image-"))
const lines = readFileSync(join(root, "deploy/Dockerfile"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
const [build = [], image = []] = lines
  .reduce<Array<Array<string>>>((stages, line) => {
    if (line.startsWith("FROM ")) stages.push([])
    stages.at(-1)?.push(line)
    return stages
  }, [])
  .map((stage) => stage.slice(1))

const told = (stage: ReadonlyArray<string>, word: string): ReadonlyArray<string> =>
  stage.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []))

const fact = (name: string, holds: boolean, seen: unknown = "") => {
  if (!holds) throw new Error(`not so: ${name} ${String(seen)}`)
  console.log(`ok  ${name}`)
}

/** Copies git's files, except the ignored ones of Dockerfile.dockerignore. */
const context = (to: string): void => {
  const { stdout } = spawnSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" })
  const ignored = readFileSync(join(root, "deploy/Dockerfile.dockerignore"), "utf8")
    .split("\n")
    .filter(Boolean)
  for (const path of stdout.split("\0").filter(Boolean)) {
    if (ignored.some((out) => path === out || path.startsWith(`${out}/`))) continue
    mkdirSync(dirname(join(to, path)), { recursive: true })
    cpSync(join(root, path), join(to, path))
  }
}

const { CASTELLAN_CONFIG, NODE_ENV, ...own } = process.env

/** Values of `--build-arg`. */
const args = { PACKAGES: "ioredis@5.11.1" }

/** By the shell of an image, which has no variables of npm. */
const run = (command: string, cwd: string): void => {
  const env = Object.fromEntries(Object.entries(own).filter(([name]) => !name.startsWith("npm_")))
  const { status, stderr, stdout } = spawnSync("sh", ["-c", command], {
    cwd,
    env: { ...env, ...args },
    encoding: "utf8"
  })
  fact(`RUN ${command}`, status === 0, `${stdout}${stderr}`)
}

/** Local folder of a path in the first stage or in the image. */
const inBuild = (path: string) => join(folder, "build", path.replace(/^\/build/, ""))
const inImage = (path: string) => join(folder, "image", path)

const copy = (line: string): void => {
  const [, from = "", to = ""] = /^--from=build (\S+) (\S+)$/.exec(line) ?? []
  fact(`COPY ${line}`, from !== "")
  const name = to === "./" ? from.split("/").at(-1) : to
  cpSync(inBuild(from), inImage(name ?? ""), { recursive: true, verbatimSymlinks: true })
}

const until = async (child: ChildProcess, isSo: () => Promise<boolean>): Promise<boolean> => {
  while (child.exitCode === null) {
    if (await isSo()) return true
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return false
}

const isReady = (url: string) => () =>
  fetch(url).then(
    ({ status }) => status === 200,
    () => false
  )

/** Writes the container's configuration, with SQLite and ports on loopback. */
const token = createHash("sha256").update(folder).digest("hex")
const configure = (port: number, adminPort: number): string => {
  const path = join(folder, "castellan.json")
  const secret = join(folder, "secret")
  writeFileSync(secret, token, { mode: 0o600 })
  const sample = JSON.parse(readFileSync(join(root, "deploy/castellan.json"), "utf8"))
  const config = {
    ...sample,
    listen: { host: "127.0.0.1", port },
    database: { path: join(folder, "castellan.sqlite") },
    keyPepper: { file: secret },
    admin: { ...sample.admin, host: "127.0.0.1", port: adminPort, token: { file: secret } }
  }
  writeFileSync(path, JSON.stringify(config))
  return path
}

try {
  mkdirSync(join(folder, "build"))
  mkdirSync(join(folder, "image"))
  context(join(folder, "build"))
  for (const command of told(build, "RUN")) run(command, join(folder, "build"))
  for (const line of told(image, "COPY")) copy(line)
  rmSync(join(folder, "build"), { recursive: true })

  fact("image with the packages of PACKAGES", existsSync(inImage("node_modules/ioredis")))

  const [port, adminPort] = [await Port.free(), await Port.free()]
  const [program = "", ...words]: ReadonlyArray<string> = JSON.parse(told(image, "CMD")[0] ?? "[]")
  const env = Object.fromEntries(
    told(image, "ENV").flatMap((line) => line.split(" ").map((pair) => pair.split("=")))
  )
  const child = spawn(program, words, {
    cwd: join(folder, "image"),
    env: { PATH: process.env.PATH, ...env, CASTELLAN_CONFIG: configure(port, adminPort) },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let said = ""
  const hear = (chunk: Buffer) => {
    said += String(chunk)
  }
  child.stdout.on("data", hear)
  child.stderr.on("data", hear)
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  try {
    const url = `http://127.0.0.1:${port}/health/ready`
    fact(`CMD ${program} ${words.join(" ")} is ready`, await until(child, isReady(url)), said)
    const [, check = "[]"] = /CMD (\[.*\])$/.exec(told(image, "HEALTHCHECK")[0] ?? "") ?? []
    const [asks = "", ...asked]: ReadonlyArray<string> = JSON.parse(check)
    const isHealthy = (at: string) =>
      spawnSync(
        asks,
        asked.map((word) => word.replace(/http:\/\/127\.0\.0\.1:8080\S*ready/, at))
      ).status === 0
    fact("HEALTHCHECK says so", isHealthy(url))
    fact("HEALTHCHECK fails elsewhere", !isHealthy(`${url}/not`))
    const metrics = await fetch(`http://127.0.0.1:${adminPort}/metrics`, {
      headers: { authorization: `Bearer ${token}` }
    })
    fact("the operator's port has metrics", (await metrics.text()).includes("castellan_build_info"))
    child.kill((told(image, "STOPSIGNAL")[0] ?? "SIGTERM") as NodeJS.Signals)
    fact("STOPSIGNAL ends it in order", (await ended) === 0, said)
  } finally {
    child.kill("SIGKILL")
    await ended
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
