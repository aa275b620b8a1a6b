import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { chownSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import * as Postgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Port from "../process/Port.js"
import * as Programs from "./Programs.js"

/** A temporary PostgreSQL server on loopback with a separate folder, port and password. */
export interface Server {
  readonly port: number
  readonly password: string
  /** The URL of one of its databases, as an operator writes it. */
  readonly url: (database: string) => string
  readonly pid: () => number
  /** Ends the process without a checkpoint, like a power failure; later connections are refused. */
  readonly halt: () => Promise<void>
  readonly resume: () => Promise<void>
  /** `halt` and `resume`. */
  readonly crash: () => Promise<void>
  /** Suspends the process and its connections: the kernel still accepts connections and bytes, but no reply follows. */
  readonly freeze: () => void
  readonly thaw: () => void
  readonly stop: () => Promise<void>
}

const user = "postgres"

interface Identity {
  readonly uid?: number
  readonly gid?: number
}

/** PostgreSQL refuses to run as root, so root switches to an unprivileged account. */
const identity = (): Identity => {
  if (process.getuid?.() !== 0) return {}
  const accounts = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
  for (const wanted of ["postgres", "nobody"]) {
    const [, , uid, gid] = accounts.find(([name]) => name === wanted) ?? []
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error("there is no account to run PostgreSQL as: add one named postgres")
}

/** Resolves when the server accepts connections; rejects with its output if it ends first. */
const ready = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = ""
    child.stderr?.on("data", (chunk: Buffer) => {
      said = `${said}${chunk.toString()}`.slice(-10_000)
      if (said.includes("ready to accept connections")) resolve()
    })
    child.once("error", reject)
    child.once("exit", (code) => reject(new Error(`postgres ended with ${code}: ${said}`)))
  })

/** The process and its descendants. */
const family = (pid: number): ReadonlyArray<number> => [
  pid,
  ...readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number)
]

/** True once the process has stopped or ended: a signal takes effect when the process runs next. */
const isStill = (pid: number): boolean => {
  try {
    return /\) [TtZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"))
  } catch {
    return true
  }
}

/**
 * Stops the process and its children. The kernel's list may miss a child while another starts or ends, so two equal
 * lists in a row, with all children stopped, count as complete.
 */
const stopFamily = (pid: number): ReadonlyArray<number> => {
  const stopped = new Set<number>()
  for (let looks = 0; looks < 2; looks += 1)
    for (const each of family(pid)) {
      if (stopped.has(each) && isStill(each)) continue
      looks = -1
      stopped.add(each)
      try {
        process.kill(each, "SIGSTOP")
      } catch {}
    }
  return [...stopped]
}

/** Ends the server of a folder and removes the folder once its input closes, which any end of this process does. */
const reap = (folder: string) => {
  const script = 'cat; kill -QUIT "$(head -n 1 "$0/data/postmaster.pid")"; rm -rf "$0"'
  const child = spawn("sh", ["-c", script, folder], { detached: true, stdio: ["pipe", "ignore", "ignore"] })
  child.unref()
  return child
}

/** Starts a server; its caller stops it. */
export const start = async (): Promise<Server> => {
  const bin = Programs.folder() ?? ""
  const as = identity()
  const folder = mkdtempSync(join(tmpdir(), "castellan-postgres-"))
  const data = join(folder, "data")
  const passwordFile = join(folder, "password")
  const password = randomBytes(16).toString("hex")
  mkdirSync(data, { mode: 0o700 })
  writeFileSync(passwordFile, password)
  if (as.uid !== undefined && as.gid !== undefined)
    for (const path of [folder, data, passwordFile]) chownSync(path, as.uid, as.gid)
  const env = { PATH: process.env.PATH ?? "", LC_ALL: "C" }
  const made = spawnSync(
    join(bin, "initdb"),
    ["-D", data, "-U", user, `--pwfile=${passwordFile}`, "-A", "scram-sha-256", "-E", "UTF8", "-N"],
    { ...as, cwd: folder, env, encoding: "utf8" }
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)

  const launch = async (port: number): Promise<ChildProcess> => {
    const settings = { listen_addresses: "127.0.0.1", port, unix_socket_directories: "", max_connections: 60 }
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
    const child = spawn(join(bin, "postgres"), ["-D", data, ...args], {
      ...as,
      cwd: folder,
      env,
      stdio: ["ignore", "ignore", "pipe"]
    })
    await ready(child)
    return child
  }
  const end = async (child: ChildProcess, signal: "SIGINT" | "SIGQUIT"): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, "exit")
    child.kill(signal)
    await exit
  }

  const started = await Port.withFree(async (port) => ({ port, child: await launch(port) }))
  const { port } = started
  let { child } = started
  const reaper = reap(folder)
  let frozen: ReadonlyArray<number> = []
  const thaw = () => {
    // A frozen process may have ended.
    for (const pid of frozen)
      try {
        process.kill(pid, "SIGCONT")
      } catch {}
    frozen = []
  }
  const halt = () => end(child, "SIGQUIT")
  const resume = async () => {
    if (child.exitCode !== null || child.signalCode !== null) child = await launch(port)
  }
  return {
    port,
    password,
    url: (database) => `postgres://${user}:${password}@127.0.0.1:${port}/${database}`,
    pid: () => child.pid ?? 0,
    halt,
    resume,
    crash: async () => {
      await halt()
      await resume()
    },
    freeze: () => {
      frozen = stopFamily(child.pid ?? 0)
    },
    thaw,
    stop: async () => {
      thaw()
      await end(child, "SIGINT")
      const exit = once(reaper, "exit")
      reaper.stdin.end()
      await exit
    }
  }
}

const asAdmin = (server: Server, use: (sql: SqlClient.SqlClient) => Effect.Effect<unknown, unknown>) =>
  Effect.flatMap(SqlClient.SqlClient, use).pipe(
    Effect.provide(Postgres.layer({ url: Redacted.make(server.url(user)) })),
    Effect.orDie
  )

/** Creates an empty database of this name; returns its URL. */
export const createDatabase = (server: Server, name: string): Effect.Effect<string> =>
  Effect.as(
    // Without a write-ahead log of each of its pages.
    asAdmin(server, (sql) => sql`create database ${sql(name)} strategy file_copy`),
    server.url(name)
  )

/** Drops databases, and closes connections to them. */
export const dropDatabases = (server: Server, names: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.asVoid(
    asAdmin(server, (sql) =>
      Effect.forEach(names, (name) => sql`drop database if exists ${sql(name)} with (force)`, {
        discard: true
      })
    )
  )
