import { spawn } from "node:child_process"

export interface Finished {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a command to its end without blocking this process: Vitest considers a worker dead after a minute of silence.
 */
export const finished = (
  command: string,
  args: ReadonlyArray<string>,
  cwd: string,
  env: NodeJS.ProcessEnv = process.env
): Promise<Finished> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, [...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] })
    const parts = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8")
      child[name].on("data", (text: string) => {
        parts[name] += text
      })
    }
    child.on("error", reject)
    child.on("close", (status) => resolve({ status, ...parts }))
  })
