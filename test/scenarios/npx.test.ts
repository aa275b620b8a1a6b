import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Npx from "../support/process/Npx.js"
import { root } from "../support/process/Program.js"

/** Real npm, npx and shells; the package is installed as npm would do it. */
const folder = mkdtempSync(join(tmpdir(), "castellan-npx-"))
const groups: Array<number> = []
const pids: Array<number> = []

const config = {
  profile: "production",
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: "castellan.sqlite" },
  keyPepper: { file: "pepper" },
  accounts: [],
  networks: []
}

beforeAll(async () => {
  await Npx.install(folder)
  writeFileSync(join(folder, "pepper"), "a pepper of many bytes\n", { mode: 0o600 })
  writeFileSync(join(folder, "castellan.json"), JSON.stringify(config))
})
afterAll(async () => {
  for (const group of groups) signal(-group, "SIGKILL")
  for (const pid of pids) signal(pid, "SIGKILL")
  rmSync(folder, { recursive: true, maxRetries: 5 })
})

const signal = (pid: number, name: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** The process that answers on the pipe is its last holder and ends when the pipe does. */
const started = async (command: string, args: ReadonlyArray<string>, says: string, env = {}) => {
  const child: ChildProcess = spawn(command, [...args], {
    cwd: folder,
    detached: true,
    env: { ...Npx.environment(), ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  groups.push(child.pid ?? 0)
  let said = ""
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()))
  await new Promise<void>((resolve, reject) => {
    const hear = (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes(says)) resolve()
    }
    child.stdout?.on("data", hear)
    child.stderr?.on("data", hear)
    child.once("close", () => reject(new Error(`${command} ended: ${said}`)))
  })
  return { pid: child.pid ?? 0, said: () => said, closed, exited }
}

/** Its parent ends; it answers for longer than it takes to notice that, and ends on its signal. */
const goesOn = async (parent: Awaited<ReturnType<typeof started>>) => {
  await parent.exited
  const pid = Number(readFileSync(join(folder, "background.pid"), "utf8"))
  pids.push(pid)
  const url = /"url":"([^"]+)"/.exec(parent.said())?.[1] ?? ""
  // Four times the interval between two checks.
  const since = performance.now()
  while (performance.now() - since < 1_000) expect((await fetch(`${url}/health/live`)).status).toBe(200)
  expect(parent.said()).not.toContain("stopping")
  signal(pid, "SIGTERM")
  await parent.closed
  expect(parent.said()).toContain('"message":"stopped"')
}

const serve = ["castellan", "serve", "--config", "castellan.json"]
const listening = '"message":"listening"'

/** npm's configuration of the shell: shells that wait for a command, and shells that become it. */
const shells = ["/bin/sh", "/bin/bash"].filter(existsSync)

describe("npx castellan serve", () => {
  it.each(shells)(
    "on SIGTERM stops the service in order, whose shell is %s",
    async (shell) => {
      const npx = await started("npx", serve, listening, { npm_config_script_shell: shell })
      signal(npx.pid, "SIGTERM")
      await npx.closed
      expect(npx.said()).toContain('"message":"stopped"')
      // The database is free again.
      const next = await started("npx", serve, listening)
      signal(-next.pid, "SIGTERM")
      await next.closed
    },
    60_000
  )

  it("interrupted by a terminal stops the service once, in order", async () => {
    const npx = await started("npx", serve, listening)
    signal(-npx.pid, "SIGINT")
    await npx.closed
    expect(npx.said().match(/"message":"stopped"/g)).toHaveLength(1)
  }, 60_000)
})

describe("npm start", () => {
  it("on SIGTERM stops the service in order", async () => {
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify({ private: true, scripts: { start: "castellan serve --config castellan.json" } })
    )
    const npm = await started("npm", ["start"], listening)
    signal(npm.pid, "SIGTERM")
    await npm.closed
    expect(npm.said()).toContain('"message":"stopped"')
  }, 60_000)

  it("leaves the service in the background and does not stop it by its end", async () => {
    const background = "castellan serve --config castellan.json & echo $! > background.pid"
    writeFileSync(join(folder, "package.json"), JSON.stringify({ scripts: { start: background } }))
    await goesOn(await started("npm", ["start"], listening))
  }, 60_000)
})

describe("the executable, which the guides start", () => {
  it("stops by the pid that the shell reports, and keeps running without its parent and standard input", async () => {
    const command = "./node_modules/.bin/castellan serve --config castellan.json & echo $! > background.pid"
    await goesOn(await started("bash", ["-c", command], listening))
  }, 60_000)
})

describe("npm run dev", () => {
  it("on SIGTERM stops the chain and the service", async () => {
    // In a separate folder, so that a developer's running stack keeps its file.
    const { scripts }: { readonly scripts: { readonly dev: string } } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8")
    )
    symlinkSync(join(root, "tools"), join(folder, "tools"))
    writeFileSync(join(folder, "package.json"), JSON.stringify({ scripts: { dev: scripts.dev } }))
    const npm = await started(
      "npm",
      ["run", "dev", "--", "--port", "0", "--rpc-port", "0"],
      "Ctrl-C stops it"
    )
    const url = /listens at (\S+), chain/.exec(npm.said())?.[1] ?? ""
    expect((await fetch(`${url}/health/live`)).status).toBe(200)
    signal(npm.pid, "SIGTERM")
    await npm.closed
    await expect(fetch(`${url}/health/live`)).rejects.toThrow()
  }, 120_000)
})
