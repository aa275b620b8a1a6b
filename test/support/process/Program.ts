import { type ChildProcess, spawn } from "node:child_process"
import * as Bundle from "./Bundle.js"
import * as Children from "./Children.js"

export const root = Bundle.root

/** A child process, its output so far, and its end. */
export interface Program {
  readonly pid: number
  readonly child: ChildProcess
  readonly stdout: () => string
  readonly stderr: () => string
  /** Resolves with the milliseconds from start to the text on stdout; rejects if the process ends first. */
  readonly says: (text: string) => Promise<number>
  /** Resolves with the exit code, or the signal's name. */
  readonly ended: Promise<number | string>
}

export interface Options {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Standard input, as a pipe; no pipe if absent. */
  readonly input?: string
}

/** The environment without the test runner's variables, as on an operator's machine. */
const plainEnv = (): NodeJS.ProcessEnv => {
  const { NODE_ENV, CASTELLAN_CONFIG, NODE_OPTIONS, VITEST, ...env } = process.env
  return env
}

/** Starts a program; its caller ends it. */
export const run = (args: ReadonlyArray<string>, options: Options = {}): Program => {
  const began = performance.now()
  const child = spawn(process.execPath, [...args], {
    cwd: options.cwd ?? root,
    env: { ...plainEnv(), ...options.env },
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"]
  })
  // A service ends its own children.
  Children.endWithProcess(child, "SIGTERM")
  child.stdin?.end(options.input)
  const text = { stdout: "", stderr: "" }
  const waiting = new Set<() => void>()
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.on("data", (chunk: Buffer) => {
      text[name] += chunk.toString()
      for (const look of waiting) look()
    })
  const ended = new Promise<number | string>((resolve) =>
    child.once("close", (code, signal) => resolve(code ?? signal ?? "unknown"))
  )
  return {
    pid: child.pid ?? 0,
    child,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    says: (wanted) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!text.stdout.includes(wanted)) return
          waiting.delete(look)
          resolve(performance.now() - began)
        }
        waiting.add(look)
        look()
        ended.then((code) => reject(new Error(`ended with ${code}: ${text.stdout}${text.stderr}`)))
      }),
    ended
  }
}

/** Runs a program from the current sources. */
export const runSource = async (
  program: Bundle.Program,
  args: ReadonlyArray<string> = [],
  options: Options = {}
): Promise<Program> => run([await Bundle.of(program), ...args], options)
