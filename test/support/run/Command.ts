import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { setPriority } from "node:os"

/** A command that has ended. */
export interface Ended {
  readonly ok: boolean
  readonly seconds: number
  /** The last lines of what it said, without colours. */
  readonly tail: ReadonlyArray<string>
}

export interface Options {
  readonly env: NodeJS.ProcessEnv
  /** After so long it is killed, with all that it started in its process group. */
  readonly limitMinutes: number
  /** Its output is shown when it has ended, in one piece: others run beside it. */
  readonly quiet?: boolean
  /** Of the operating system: from 0, the usual one, to 19, the lowest. */
  readonly priority?: number
}

const tailLines = 15
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const colours = /\u001b\[[0-9;]*[A-Za-z]/g

const groups = new Set<number>()

/** Ends all commands that run, with their process groups. */
export const endAll = (): void => {
  for (const group of groups)
    try {
      process.kill(-group, "SIGKILL")
    } catch {
      // It has just ended by itself.
    }
}

/** Lowers the priority of a process and of what it will start. */
const lower = (pid: number, priority: number): void => {
  try {
    setPriority(pid, priority)
    // Linux may schedule sessions against each other, and the processes of one only among themselves.
    writeFileSync(`/proc/${pid}/autogroup`, String(priority))
  } catch {
    // It has ended already, or the system has no such thing.
  }
}

/** Runs a command in a process group of its own and shows what it says. */
export const run = (
  [command = "", ...args]: ReadonlyArray<string>,
  { env, limitMinutes, priority = 0, quiet = false }: Options
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true })
    const group = child.pid ?? 0
    if (group > 0) groups.add(group)
    if (group > 0 && priority > 0) lower(group, priority)
    const kept: Array<Buffer> = []
    let last = ""
    const hear = (chunk: Buffer, stream: NodeJS.WriteStream): void => {
      if (quiet) kept.push(chunk)
      else stream.write(chunk)
      last = `${last}${chunk.toString()}`.slice(-20_000)
    }
    child.stdout.on("data", (chunk: Buffer) => hear(chunk, process.stdout))
    child.stderr.on("data", (chunk: Buffer) => hear(chunk, process.stderr))
    let late = false
    const limit = setTimeout(() => {
      late = true
      process.kill(-group, "SIGKILL")
    }, limitMinutes * 60_000)
    child.once("error", reject)
    child.once("exit", () => {
      // What it left behind would hold its output open.
      try {
        process.kill(-group, "SIGKILL")
      } catch {
        // Nothing is left.
      }
    })
    child.once("close", (code) => {
      clearTimeout(limit)
      groups.delete(group)
      for (const chunk of kept) process.stdout.write(chunk)
      const lines = last
        .replace(colours, "")
        .split("\n")
        .filter((line) => line.trim() !== "")
      resolve({
        ok: code === 0,
        seconds: (performance.now() - began) / 1_000,
        tail: [...lines.slice(-tailLines), ...(late ? [`killed after ${limitMinutes} minutes`] : [])]
      })
    })
  })
