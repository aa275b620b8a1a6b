import { fork } from "node:child_process"
import { createHmac, randomUUID } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "../../test/support/process/Program.js"
import * as Client from "./Client.js"
import type { Context } from "./Context.js"
import * as Processes from "./Processes.js"

/** An endpoint in fastify with keys, limits, a schema and a log, as the peer of castellan's HTTP. */
export interface Fastify {
  readonly pid: number
  readonly keys: ReadonlyArray<string>
  readonly client: Client.Client
}

const pepper = "of a bench that ends soon"

export const start = async (
  context: Context,
  options: { readonly accounts: number; readonly perMinute: number; readonly bodyLimit: number }
): Promise<Fastify> => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-bench-fastify-"))
  context.defer(() => rmSync(folder, { recursive: true, force: true }))
  const keys = Array.from({ length: options.accounts }, () => `key_${randomUUID()}${randomUUID()}`)
  const hashes = keys.map((key, place) => ({
    account: `account-${place}`,
    hash: createHmac("sha256", pepper).update(key).digest("hex")
  }))
  const peers = join(root, "bench/peers/service")
  const child = fork(join(peers, "fastify.mjs"), [], {
    cwd: peers,
    execArgv: [],
    stdio: ["ignore", 2, 2, "ipc"],
    env: {
      ...process.env,
      NODE_ENV: "production",
      BODY_LIMIT: String(options.bodyLimit),
      KEYS: JSON.stringify(hashes),
      LOG_FILE: join(folder, "log.jsonl"),
      MAX: String(options.perMinute),
      PEPPER: pepper
    }
  })
  Processes.tie(child)
  context.defer(() => Processes.end(child))
  const port = await new Promise<number>((resolve, reject) => {
    child.once("message", (message: { readonly port: number }) => resolve(message.port))
    child.once("exit", (code) => reject(new Error(`fastify.mjs ended with ${code}`)))
  })
  const client = Client.make(`http://127.0.0.1:${port}`)
  context.defer(client.close)
  return { pid: child.pid ?? 0, keys, client }
}
