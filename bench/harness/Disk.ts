import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Context } from "./Context.js"
import * as Processes from "./Processes.js"

/** Calls of a process to its database and the disk. */

export interface Statements {
  readonly reads: number
  readonly writes: number
  readonly commits: number
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Environment and options of a process with counted statements, and a reader of the counts. */
export const counted = (context: Context) => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-bench-counts-"))
  context.defer(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, "thread")
  return {
    nodeArgs: ["--import", fileURLToPath(new URL("statements.mjs", import.meta.url))],
    env: {
      CASTELLAN_BENCH_COUNTS: file
    },
    /** Reads the counts once pending ones are written. */
    read: async (): Promise<Statements> => {
      await pause(400)
      const threads = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)))
      const counts = threads.map((name): Statements => JSON.parse(readFileSync(join(folder, name), "utf8")))
      const sum = (key: keyof Statements) => counts.reduce((total, one) => total + one[key], 0)
      return { reads: sum("reads"), writes: sum("writes"), commits: sum("commits") }
    }
  }
}

export const minus = (after: Statements, before: Statements): Statements => ({
  reads: after.reads - before.reads,
  writes: after.writes - before.writes,
  commits: after.commits - before.commits
})

export interface Writes {
  readonly fsyncs: number
  /** Bytes written to files with the database's name as prefix. */
  readonly bytes: number
}

/** Whether strace is installed and may trace processes. */
export const traceable = (): boolean => spawnSync("strace", ["-o", "/dev/null", "true"]).status === 0

/** Writes to the database's files by all threads of the process during the work, from strace. */
export const traced = async (pid: number, database: string, work: () => Promise<void>): Promise<Writes> => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-bench-strace-"))
  const output = join(folder, "trace")
  const calls = "trace=fsync,fdatasync,pwrite64,write,pwritev"
  const tracer = spawn(
    "strace",
    ["-f", "-y", "-qq", "-e", calls, "-s", "0", "-o", output, "-p", String(pid)],
    {
      stdio: "ignore"
    }
  )
  Processes.tie(tracer)
  try {
    // strace stops every thread to attach: later calls are traced.
    await pause(500)
    await work()
    await pause(200)
    await Processes.end(tracer, "SIGINT")
    return summed(readFileSync(output, "utf8"), database)
  } finally {
    await Processes.end(tracer)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Interrupted calls take two lines; the second one has the result but no file name. */
const summed = (trace: string, database: string): Writes => {
  let fsyncs = 0
  let bytes = 0
  const open = new Map<string, boolean>()
  for (const line of trace.split("\n")) {
    const thread = /^\d+/.exec(line)?.[0] ?? ""
    const resumed = line.includes(" resumed>")
    const concerns = resumed ? open.get(thread) === true : line.includes(`<${database}`)
    if (line.includes("<unfinished ...>")) open.set(thread, concerns)
    if (!concerns || line.includes("<unfinished ...>")) continue
    if (line.includes("sync")) fsyncs += 1
    else bytes += Number(/= (\d+)$/.exec(line)?.[1] ?? 0)
  }
  return { fsyncs, bytes }
}
