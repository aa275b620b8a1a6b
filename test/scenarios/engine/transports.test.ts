import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { id as hashOf, Transaction } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { NetworkProfile } from "../../../src/application/ports/NetworkProfile.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { type Fault, type FaultyNode, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import * as Hits from "../../support/stack/Hits.js"
import { type Stack, startStack } from "../../support/stack/Stack.js"

/** Nodes are transports of a lane: transactions go on when the node that they were given to does not. */

let stack: Stack
let hits: Hits.Hits
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "transports-"))
  stack = await startStack({ profile: { receiptTimeoutMillis: 50_000 } })
  hits = await Hits.make(stack)
  await stack.create("one", "two")
})
afterEach(() => hits.automine(true))
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

const never = new Promise<never>(() => undefined)

describe("the operator's node with another URL", () => {
  const creation = (salt: string) => {
    const caller = stack.caller()
    return {
      requestId: caller.requestId,
      run: CreateWallets.run(caller, {
        accounts: [{ salt, walletCustody: 1 as const }],
        settings: stack.settings
      })
    }
  }
  const withRpc = (profile: NetworkProfile, url: string) => ({ ...profile, rpc: Redacted.make(url) })
  const existsAt = async (salt: string) => (await stack.provider.getCode(stack.predict(salt))) !== "0x"

  it("is gone on at by what is under way, in the same life", async () => {
    const former = await startFaultyNode(stack.anvil.url)
    let url = former.url
    const runtime = stack.begin({
      wrapNetworks: (networks) => ({
        ...networks,
        profile: (account, chainId) =>
          Effect.map(networks.profile(account, chainId), (profile) =>
            profile === null ? null : withRpc(profile, url)
          )
      })
    })
    try {
      await stack.fund(stack.predict("moved"), 10n ** 18n)
      await hits.automine(false)
      const answer = runtime.runPromise(creation("moved").run)
      await hits.pooled(1)
      await former.stop()
      url = stack.anvil.url
      await hits.automine(true)
      await hits.mine()
      expect((await answer).status).toBe(1)
      expect(await existsAt("moved")).toBe(true)
      expect(await hits.openOf(runtime)).toEqual([])
    } finally {
      await runtime.dispose()
    }
  }, 60_000)

  it("is gone on at by what is under way, after a restart", async () => {
    const former = await startFaultyNode(stack.anvil.url)
    const database = join(folder, "moved.sqlite")
    const first = stack.begin({ database, profile: { rpc: Redacted.make(former.url) } })
    await stack.fund(stack.predict("restarted"), 10n ** 18n)
    await hits.automine(false)
    const { requestId, run } = creation("restarted")
    first.runFork(run)
    await hits.pooled(1)
    await first.dispose()
    await former.stop()
    const second = stack.begin({ database })
    try {
      await second.runPromise(Sweep.start)
      await hits.automine(true)
      await hits.mine()
      const { answer } = await hits.answerOf(second, requestId)
      expect(answer.status).toBe(1)
      expect(await existsAt("restarted")).toBe(true)
      expect(await hits.openOf(second)).toEqual([])
    } finally {
      await second.dispose()
    }
  }, 60_000)
})

describe("a caller's node that takes a transaction and then", () => {
  let node: FaultyNode
  beforeAll(async () => {
    node = await startFaultyNode(stack.anvil.url)
  })
  afterEach(() => node.behave())
  afterAll(() => node.stop())

  /** From the first transaction on; `forwards`: that one is given to the chain. */
  const thenDoes = (forwards: boolean, fault: Fault): Fault => {
    let sent = false
    return async (question, ask) => {
      if (sent) return fault(question, ask)
      if (question.method !== "eth_sendRawTransaction") return ask()
      sent = true
      return forwards ? ask() : { result: Transaction.from(String(question.params[0])).hash }
    }
  }
  const lies: Fault = async (question, ask) => {
    switch (question.method) {
      case "eth_getTransactionReceipt":
      case "eth_getTransactionByHash":
        return { result: null }
      case "eth_sendRawTransaction":
        return { result: Transaction.from(String(question.params[0])).hash }
      default:
        return ask()
    }
  }
  const refuses: Fault = async (question, ask) =>
    question.method === "eth_sendRawTransaction" ? refusal(-32_000, "nonce too low") : lies(question, ask)

  const faults: ReadonlyArray<readonly [string, () => Fault]> = [
    ["dies", () => thenDoes(true, async () => null)],
    ["dies, and has told nobody of it", () => thenDoes(false, async () => null)],
    ["never answers", () => thenDoes(false, () => never)],
    ["says that it is unknown", () => thenDoes(false, lies)],
    ["refuses it", () => thenDoes(false, refuses)]
  ]

  it.each(faults)(
    "%s is not waited for: the request has its answer by the operator's node",
    async (name, fault) => {
      const runtime = stack.begin()
      try {
        const id = hashOf(name)
        const before = await hits.nonce()
        node.behave(fault())
        const answer = await runtime.runPromise(
          ExecuteOperations.run(stack.caller(), {
            operations: [hits.hit("one", id)],
            settings: { ...stack.settings, rpc: node.url }
          })
        )
        expect(answer.status).toBe(1)
        expect(answer.logs.length).toBeGreaterThan(0)
        expect(await hits.countOf(id)).toBe(1)
        expect(await hits.nonce()).toBe(before + 1)
        expect(await hits.openOf(runtime)).toEqual([])
      } finally {
        await runtime.dispose()
      }
    },
    60_000
  )

  it("dies holds no slot: where the operator has no node the next request's node serves both", async () => {
    const runtime = stack.begin({ profile: { rpc: null, sponsor: null, maxInFlight: 1 } })
    try {
      const [one, two] = [hashOf("first of a full lane"), hashOf("second of a full lane")]
      const before = await hits.nonce()
      node.behave(thenDoes(false, async () => null))
      const transact = (id: string, rpc: string) =>
        runtime.runPromise(
          TransactSigner.run(stack.caller(), {
            to: hits.counter,
            funcSignature: "hit(bytes32)",
            funcParams: [id],
            settings: { rpc, signer: stack.settings.signer }
          })
        )
      const first = transact(one, node.url)
      await expect.poll(async () => (await hits.openOf(runtime)).length, { timeout: 10_000 }).toBe(1)
      const second = await transact(two, stack.anvil.url)
      expect([(await first).status, second.status]).toEqual([1, 1])
      expect([await hits.countOf(one), await hits.countOf(two)]).toEqual([1, 1])
      expect(await hits.nonce()).toBe(before + 2)
    } finally {
      await runtime.dispose()
    }
  }, 60_000)
})
