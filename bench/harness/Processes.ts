import { type ChildProcess, execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"

/** The kernel's figures about a process: Linux only. */

const ticksPerSecond = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }))

/** CPU time of all its threads, user and system, in ms. Resolution 10 ms. */
export const cpuMillis = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  // The name in parentheses may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond
}

/** Resident memory, MB of 2^20 bytes. */
export const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024

/** Ends only this process, and resolves when it has ended. */
export const end = (child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once("exit", () => resolve())
    child.kill(signal)
  })

/** Ends the child when this process ends, by itself or by Ctrl-C. */
export const tie = (child: ChildProcess): void => {
  const orphan = () => void child.kill("SIGKILL")
  process.once("exit", orphan)
  child.once("exit", () => process.removeListener("exit", orphan))
}
