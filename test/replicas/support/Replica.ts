import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Build } from "../../faults/support/Build.js"
import { type Program, run } from "../../support/process/Program.js"
import * as TcpProxy from "../../support/process/TcpProxy.js"

/** One of several processes that share a database, with wires of its own to the database and to the node. */
export interface Replica {
  readonly name: string
  /** Its URL, while it takes requests. */
  readonly url: () => string | null
  /** Its name in the journal's claims of lanes: one per life. */
  readonly processes: () => ReadonlyArray<string>
  readonly begin: () => Promise<void>
  /** Runs this from its next life on. */
  readonly use: (build: Build) => void
  /** Kills it without warning, like a crash. */
  readonly kill: () => Promise<void>
  /** Replaces it as an operator does: it gets no new requests and answers its open ones. */
  readonly drain: () => Promise<number | string>
  /** Suspends or resumes the process. */
  readonly hold: (held: boolean) => void
  readonly database: TcpProxy.TcpProxy
  /** Resident memory of the process, bytes. */
  readonly memory: () => number
  /** CPU time of the process so far, in seconds. */
  readonly cpuSeconds: () => number
  readonly node: TcpProxy.TcpProxy
  readonly log: () => string
  readonly stop: () => Promise<void>
}

export interface Options {
  readonly build: Build
  readonly name: string
  /** The node's address in this replica's name server. */
  readonly address: string
  readonly chain: { readonly port: number }
  readonly database: { readonly port: number }
  /** The node's port, the same at the address of every replica; 0 picks one. */
  readonly nodePort: number
  /** The configuration file, with this replica's addresses of node and database. */
  readonly config: (wires: { readonly nodeUrl: string; readonly databasePort: number }) => string
}

/** Time until the balancer sends no more requests to a replica that is being replaced. */
const balancerMillis = 500

/** Of the times in /proc, on Linux. */
const ticksPerSecond = 100

const mostStarts = 10
const unanswered = /cannot use the PostgreSQL server|schema of the database|registry of processes/

const said = (program: Program, pattern: RegExp): string | null => pattern.exec(program.stdout())?.[1] ?? null

export const make = async (options: Options): Promise<Replica> => {
  const { address, build, name } = options
  let program = build.replica
  const folder = mkdtempSync(join(build.folder, "replica-"))
  const database = await TcpProxy.start({ host: "127.0.0.1", port: options.database.port })
  const node = await TcpProxy.start(
    { host: "127.0.0.1", port: options.chain.port },
    { host: address, port: options.nodePort }
  )
  const file = join(folder, "castellan.json")
  writeFileSync(
    file,
    options.config({ nodeUrl: `http://${address}:${node.port}`, databasePort: database.port })
  )
  const lives: Array<Program> = []
  let url: string | null = null
  const end = (signal: NodeJS.Signals, afterMillis: number) => async () => {
    url = null
    await new Promise((resolve) => setTimeout(resolve, afterMillis))
    const life = lives.at(-1)
    life?.child.kill(signal)
    return (await life?.ended) ?? 0
  }
  const kill = async () => void (await end("SIGKILL", 0)())
  const atExit = () => void lives.at(-1)?.child.kill("SIGKILL")
  process.once("exit", atExit)
  return {
    name,
    database,
    node,
    url: () => url,
    processes: () =>
      lives.flatMap((life) => said(life, /"message":"shares the lanes[^\n]*"process":"([^"]+)"/) ?? []),
    begin: async () => {
      for (let starts = 1; ; starts += 1) {
        const life = run([program], {
          cwd: folder,
          env: { CASTELLAN_CONFIG: file, CASTELLAN_TEST_ADDRESS: address }
        })
        lives.push(life)
        const isUp = await life.says('"message":"listening"').then(
          () => true,
          () => false
        )
        url = said(life, /"message":"listening"[^\n]*"url":"([^"]+)"/)
        if (isUp) return
        // An operator starts a service again when its database did not reply in time.
        if (starts === mostStarts || !unanswered.test(life.stderr()))
          throw new Error(`${name} does not start: ${life.stderr()}`)
      }
    },
    use: (next) => {
      program = next.replica
    },
    kill,
    drain: end("SIGTERM", balancerMillis),
    memory: () => {
      const status = readFileSync(`/proc/${lives.at(-1)?.pid}/status`, "utf8")
      return 1_024 * Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0)
    },
    cpuSeconds: () => {
      const stat = readFileSync(`/proc/${lives.at(-1)?.pid}/stat`, "utf8")
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
    },
    hold: (held) => void lives.at(-1)?.child.kill(held ? "SIGSTOP" : "SIGCONT"),
    log: () => lives.map((life) => life.stdout() + life.stderr()).join("--- another life ---\n"),
    stop: async () => {
      lives.at(-1)?.child.kill("SIGCONT")
      await kill()
      process.off("exit", atExit)
      await Promise.all([database.stop(), node.stop()])
    }
  }
}
