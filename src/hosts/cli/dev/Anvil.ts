import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import * as Bring from "../support/Bring.js"

/** A running development chain. `stop` ends only the process that `startAnvil` started. */
export interface Anvil {
  readonly url: string
  readonly chainId: number
  readonly stop: () => Promise<void>
}

export interface AnvilOptions {
  /** TCP port on 127.0.0.1; 0 or absent: a free port. */
  readonly port?: number
  readonly chainId?: number
  /** Seconds between blocks; absent: one block per transaction. */
  readonly blockTime?: number
  /** Runs in a separate process group: a terminal's Ctrl-C does not reach it, `stop` ends it. */
  readonly detached?: boolean
  readonly args?: ReadonlyArray<string>
}

/** The package's native binary, not its Node launcher: signals must reach the chain itself. */
const ofPackage = (): string | null => {
  const arch = process.arch === "x64" ? "amd64" : process.arch
  for (const require of Bring.resolvers())
    try {
      const own = createRequire(require.resolve("@foundry-rs/anvil/package.json"))
      return own.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`)
    } catch {}
  return null
}

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const onPath = (): string | null =>
  (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, process.platform === "win32" ? "anvil.exe" : "anvil"))
    .find(isExecutable) ?? null

/** npm specifier of the anvil that `castellan dev` installs. */
export const spec = "@foundry-rs/anvil@1.7.1"

const find = (): string | null => ofPackage() ?? onPath()

/** npm specifier of anvil, if neither an installed package nor the PATH has it. */
export const absent = (): ReadonlyArray<string> => (find() === null ? [spec] : [])

/** Finds anvil in the npm package, then on the PATH. */
export const binary = (): string => {
  const found = find()
  if (found === null) throw new Error(`anvil is not installed: ${Bring.advice([spec])}`)
  return found
}

const stop = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once("exit", () => resolve())
    child.kill("SIGKILL")
  })

/** Starts an anvil on 127.0.0.1 and resolves when it responds. */
export const startAnvil = async (options: AnvilOptions = {}): Promise<Anvil> => {
  const chainId = options.chainId ?? 31337
  // A killed anvil leaves gigabytes of old states in its cache: not in the home folder.
  const states = mkdtempSync(join(tmpdir(), "castellan-anvil-"))
  const args = ["--host", "127.0.0.1", "--port", String(options.port ?? 0), "--chain-id", String(chainId)]
  args.push("--cache-path", states)
  if (options.blockTime !== undefined) args.push("--block-time", String(options.blockTime))
  const child = spawn(binary(), [...args, ...(options.args ?? [])], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: options.detached ?? false
  })
  const forget = () => rmSync(states, { recursive: true, force: true })
  child.once("error", forget)
  child.once("exit", forget)
  const port = await new Promise<string>((resolve, reject) => {
    let output = ""
    const read = (chunk: Buffer) => {
      output += chunk.toString()
      const [, listening] = /Listening on \S+:(\d+)\s/.exec(output) ?? []
      if (listening !== undefined) resolve(listening)
    }
    child.stdout?.on("data", read)
    child.stderr?.on("data", read)
    child.once("error", reject)
    child.once("exit", (code) => reject(new Error(`anvil ended with ${code}: ${output.slice(-500)}`)))
  })
  child.stdout?.removeAllListeners("data").resume()
  child.stderr?.removeAllListeners("data").resume()
  const orphan = () => {
    child.kill("SIGKILL")
    forget()
  }
  process.once("exit", orphan)
  child.once("exit", () => process.removeListener("exit", orphan))
  return { url: `http://127.0.0.1:${port}`, chainId, stop: () => stop(child) }
}
