import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type { JsonRpcProvider } from "ethers"
import * as DevChain from "../../../src/hosts/cli/dev/DevChain.js"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import * as Wiring from "../../../src/hosts/Wiring.js"
import { startNode } from "../../../tools/PreparedChain.js"
import { type Program, runSource } from "../../support/process/Program.js"

const pepper = "a pepper that only this test uses"
const folder = mkdtempSync(join(tmpdir(), "castellan-stopping-"))
const scope = Effect.runSync(Scope.make())
let provider: JsonRpcProvider
let apiKey: string
let entryPoint: string
const running: Array<Program> = []

beforeAll(async () => {
  const starting = DevChain.start({ port: 0, chainId: 31337, blockTime: null, startNode })
  const dev = await Effect.runPromise(Scope.provide(starting, scope))
  provider = new NodeProvider(dev.url, 31337, { staticNetwork: true })
  ;[entryPoint = ""] = Object.values(dev.entryPoints)
  const { hash, key } = await Effect.runPromise(Wiring.issueKey(Redacted.make(pepper)))
  apiKey = Redacted.value(key)
  writeFileSync(
    join(folder, "castellan.json"),
    JSON.stringify({
      profile: "development",
      listen: { host: "127.0.0.1", port: 0 },
      database: { path: "castellan.sqlite" },
      keyPepper: pepper,
      accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [{ hash }] }],
      signers: [
        { accounts: ["acme"], clientId: "acme", versionId: "1", privateKey: devKeys.signer.privateKey }
      ],
      networks: [{ chainId: 31337, rpc: dev.url }],
      limits: { drainMillis: 100 }
    })
  )
})
afterAll(async () => {
  for (const { child } of running) child.kill("SIGKILL")
  await Promise.all(running.map(({ ended }) => ended))
  provider.destroy()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true })
})

const service = async () => {
  const program = await runSource("src/hosts/node/main.ts", [], {
    cwd: folder,
    env: { CASTELLAN_CONFIG: join(folder, "castellan.json") }
  })
  running.push(program)
  await program.says('"message":"listening"')
  return { program, url: /"url":"([^"]+)"/.exec(program.stdout())?.[1] ?? "" }
}

const entries = ({ stdout }: Program): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  stdout()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

const ended = async (program: Program) => {
  program.child.kill("SIGTERM")
  expect(await program.ended).toBe(0)
  return entries(program).filter(({ message }) => ["stopping", "stopped"].includes(String(message)))
}

const send = (url: string, prefer: Readonly<Record<string, string>>) =>
  fetch(`${url}/transactSigner`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": apiKey, ...prefer },
    body: JSON.stringify({
      to: "0x000000000000000000000000000000000000dEaD",
      value: "1",
      settings: {
        rpc: provider._getConnection().url,
        entryPoint,
        signer: { clientId: "acme", versionId: "1" }
      }
    })
  })

describe("a stop by SIGTERM", () => {
  it("logs the stop, no open work, and last the completed stop", async () => {
    const { program } = await service()
    expect(await ended(program)).toEqual([
      expect.objectContaining({ message: "stopping", requests: 0, acceptedRequests: 0, transactions: 0 }),
      expect.objectContaining({ message: "stopped" })
    ])
    expect(entries(program).at(-1)).toMatchObject({ message: "stopped", level: "INFO" })
  })

  it("logs open work, and the next start does not warn of transactions that the node has", async () => {
    await provider.send("evm_setAutomine", [false])
    const first = await service()
    const accepted = await send(first.url, { prefer: "respond-async" })
    expect(accepted.status).toBe(202)
    const pooled = async (count: bigint) => {
      const pending = async () => (await provider.send("txpool_status", [])).pending
      while (BigInt(await pending()) < count) await new Promise((resolve) => setImmediate(resolve))
    }
    // Each request gets a transaction: the second arrives after the first was sent.
    await pooled(1n)
    const waiting = send(first.url, {})
    await pooled(2n)
    const said = await ended(first.program)
    expect(said).toEqual([
      expect.objectContaining({ message: "stopping", requests: 1, acceptedRequests: 2, transactions: 2 }),
      expect.objectContaining({ message: "stopped" })
    ])
    expect((await waiting).status).toBe(422)

    const second = await service()
    const requestId = ((await accepted.json()) as { readonly requestId: string }).requestId
    const stateAfter = async (wait: number) => {
      const headers = { "x-api-key": apiKey }
      const answer = await fetch(`${second.url}/requests/${requestId}?wait=${wait}`, { headers })
      return ((await answer.json()) as { readonly state: string }).state
    }
    expect(await stateAfter(0)).toBe("pending")
    await provider.send("evm_setAutomine", [true])
    await provider.send("evm_mine", [])
    expect(await stateAfter(30)).toBe("final")
    await ended(second.program)
    expect(entries(second.program).filter(({ level }) => level !== "INFO")).toEqual([])
  })
})
