import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Children from "../process/Children.js"
import * as Port from "../process/Port.js"

/** A temporary Redis on loopback with its own password. */
export interface Server {
  readonly url: string
  /** Ends the process; its data is lost. */
  readonly end: () => Promise<void>
  /** Restarts it empty on the same port. */
  readonly begin: () => Promise<void>
  /** Suspends or resumes the process; while suspended it accepts connections but never replies. */
  readonly hold: (held: boolean) => void
  readonly stop: () => Promise<void>
}

const ready = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = ""
    child.stdout?.on("data", (chunk: Buffer) => {
      said = `${said}${chunk.toString()}`.slice(-10_000)
      if (said.includes("Ready to accept connections")) resolve()
    })
    child.once("error", reject)
    child.once("exit", (code) => reject(new Error(`redis-server ended with ${code}: ${said}`)))
  })

/** Starts a server; its caller stops it. */
export const start = async (): Promise<Server> => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-redis-"))
  const password = randomBytes(16).toString("hex")
  const launch = async (port: number): Promise<ChildProcess> => {
    const settings = {
      bind: "127.0.0.1",
      port,
      dir: folder,
      requirepass: password,
      save: "",
      appendonly: "no"
    }
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    const child = spawn("redis-server", args, { stdio: ["ignore", "pipe", "ignore"] })
    Children.endWithProcess(child, "SIGKILL")
    await ready(child)
    return child
  }
  const started = await Port.withFree(async (port) => ({ port, child: await launch(port) }))
  const { port } = started
  let { child } = started
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, "exit")
    child.kill("SIGKILL")
    await exit
  }
  return {
    url: `redis://:${password}@127.0.0.1:${port}/0`,
    end,
    begin: async () => {
      await end()
      child = await launch(port)
    },
    hold: (held) => {
      child.kill(held ? "SIGSTOP" : "SIGCONT")
    },
    stop: async () => {
      await end()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
