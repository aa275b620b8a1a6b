import { fork, spawn, spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../test/support/process/Program.js"
import type { Context } from "./Context.js"
import * as Processes from "./Processes.js"

/** Other projects' programs and packages to compare with: for development only, in a separate folder. */

const folder = join(root, "bench/peers/service")

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
}

export const versions = (): Readonly<Record<string, string>> => {
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  return manifest.dependencies
}

/** Compares the lockfile with npm's copy of the installed one. */
const installed = (): boolean => {
  const own = join(folder, "node_modules/.package-lock.json")
  if (!existsSync(own)) return false
  const packages = (file: string): Readonly<Record<string, { readonly version?: string }>> =>
    JSON.parse(readFileSync(file, "utf8")).packages
  const found = packages(own)
  const wanted = packages(join(folder, "package-lock.json"))
  return Object.keys(versions()).every(
    (name) => found[`node_modules/${name}`]?.version === wanted[`node_modules/${name}`]?.version
  )
}

/** Needs the network once. */
export const install = (): void => {
  if (installed()) return
  console.log("installs the peers into bench/peers/service (about 450 MB)")
  const args = ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const { status } = spawnSync("npm", args, { stdio: "inherit" })
  if (status !== 0) throw new Error("the peers were not installed")
}

/** Imports a file of the peers' folder into this process. */
export const load = async <Module>(file: string): Promise<Module> =>
  import(join(folder, file)) as Promise<Module>

/** A program of the peers' folder in a separate process, driven by messages. */
export interface Peer {
  readonly pid: number
  readonly ask: <Result>(method: string, params: unknown) => Promise<Result>
}

export const start = (context: Context, file: string, nodeArgs: ReadonlyArray<string> = []): Peer => {
  const child = fork(join(folder, file), [], {
    cwd: folder,
    execArgv: [...nodeArgs],
    stdio: ["ignore", 2, 2, "ipc"]
  })
  Processes.tie(child)
  context.defer(() => Processes.end(child))
  const waiting = new Map<
    number,
    { readonly done: (value: unknown) => void; readonly fail: (cause: Error) => void }
  >()
  let asked = 0
  child.on(
    "message",
    (message: { readonly id: number; readonly result?: unknown; readonly error?: string }) => {
      const { done, fail } = waiting.get(message.id) ?? {}
      waiting.delete(message.id)
      if (message.error === undefined) done?.(message.result)
      else fail?.(new Error(`${file}: ${message.error}`))
    }
  )
  child.once("exit", (code) => {
    for (const { fail } of waiting.values()) fail(new Error(`${file} ended with ${code}`))
  })
  return {
    pid: child.pid ?? 0,
    ask: <Result>(method: string, params: unknown) =>
      new Promise<Result>((done, fail) => {
        const id = asked++
        waiting.set(id, { done: (value) => done(value as Result), fail })
        child.send({ id, method, params })
      })
  }
}

/** Runs another program of theirs, for example a server; keeps its output. */
export const run = (
  context: Context,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
) => {
  const child = spawn(process.execPath, [...args], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  Processes.tie(child)
  let said = ""
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      said = (said + String(chunk)).slice(-20_000)
    })
  context.defer(() => Processes.end(child))
  return { pid: child.pid ?? 0, child, said: () => said }
}

/** A measured function, called with each input in turn. */
export type Contender = (input?: unknown) => unknown

/** Exports of functions.mjs: by task, from its inputs to the measured function. */
export type Functions = Readonly<
  Record<"viem" | "ox" | "wasm", Readonly<Record<string, (inputs: unknown) => Contender>>>
>
