import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { id as hashOf, Transaction } from "ethers"
import { describe, expect, it } from "vitest"
import { type Fault, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, useStack } from "../../support/stack/Stack.js"

/** Nodes are transports of a lane: transactions continue when the node that took them stops. */

const stack = useStack({ profile: { receiptTimeoutMillis: 50_000 } }, (stack) => stack.create("one", "two"))
const existsAt = async (salt: string) => (await stack.provider.getCode(stack.predict(salt))) !== "0x"

describe("the operator's node with another URL", { timeout: 60_000 }, () => {
  it("continues the work under way, in the same life", async () => {
    const former = await startFaultyNode(stack.anvil.url)
    let url = former.url
    await stack.fund(stack.predict("moved"), 10n ** 18n)
    const runtime = stack.begin({
      wrapNetworks: (networks) => ({
        ...networks,
        profile: (account, chainId) =>
          Effect.map(networks.profile(account, chainId), (profile) =>
            profile === null ? null : { ...profile, rpc: Redacted.make(url) }
          )
      })
    })
    await stack.automine(false)
    const answer = runtime.runPromise(stack.createWallets(["moved"]))
    await stack.pooled(1)
    await former.stop()
    url = stack.anvil.url
    await stack.automine(true)
    await stack.mine()
    expect([(await answer).status, await existsAt("moved")]).toEqual([1, true])
    expect(await stack.openOf(runtime)).toEqual([])
    await runtime.dispose()
  })

  it("continues the work under way, after a restart", async () => {
    const former = await startFaultyNode(stack.anvil.url)
    const [caller, database] = [stack.caller(), stack.database()]
    await stack.fund(stack.predict("restarted"), 10n ** 18n)
    const first = stack.begin({ database, profile: { rpc: Redacted.make(former.url) } })
    await stack.automine(false)
    first.runFork(stack.createWallets(["restarted"], {}, caller))
    await stack.pooled(1)
    await first.dispose()
    await former.stop()
    await stack.living({ database }, async (second) => {
      await stack.automine(true)
      await stack.mine()
      const { answer } = await stack.answerOf(second, caller.requestId)
      expect([answer.status, await existsAt("restarted")]).toEqual([1, true])
      expect(await stack.openOf(second)).toEqual([])
    })
  })
})

describe("a caller's node that takes a transaction and then", { timeout: 60_000 }, () => {
  /** From the first transaction on; `forwards`: the chain receives that one. */
  const thenDoes = (forwards: boolean, fault: Fault): Fault => {
    let sent = false
    return async (question, ask) => {
      if (sent) return fault(question, ask)
      if (question.method !== "eth_sendRawTransaction") return ask()
      sent = true
      return forwards ? ask() : { result: Transaction.from(String(question.params[0])).hash }
    }
  }
  const hidden = ["eth_getTransactionReceipt", "eth_getTransactionByHash"]
  const lies: Fault = async ({ method, params }, ask) => {
    if (hidden.includes(method)) return { result: null }
    if (method !== "eth_sendRawTransaction") return ask()
    return { result: Transaction.from(String(params[0])).hash }
  }
  const refuses: Fault = async (question, ask) =>
    question.method === "eth_sendRawTransaction" ? refusal(-32_000, "nonce too low") : lies(question, ask)
  const dies: Fault = async () => null
  const isSilent: Fault = () => new Promise<never>(() => undefined)

  it.each([
    ["dies", true, dies],
    ["dies without forwarding it", false, dies],
    ["never answers", false, isSilent],
    ["says that it is unknown", false, lies],
    ["refuses it", false, refuses]
  ])(
    "%s is not waited for: the request has its answer by the operator's node",
    async (name, forwards, fault) => {
      const node = await startFaultyNode(stack.anvil.url)
      const runtime = stack.begin()
      const id = hashOf(name)
      const before = await stack.nonce()
      node.behave(thenDoes(forwards, fault))
      const answer = await runtime.runPromise(stack.execute([stack.hit("one", id)], { rpc: node.url }))
      expect(answer.status).toBe(1)
      expect(answer.logs.length).toBeGreaterThan(0)
      expect([await stack.counts(id), await stack.nonce()]).toEqual([[1], before + 1])
      expect(await stack.openOf(runtime)).toEqual([])
      await runtime.dispose()
      await node.stop()
    }
  )

  it("dies holds no slot: where the operator has no node the next request's node serves both", async () => {
    const node = await startFaultyNode(stack.anvil.url)
    const runtime = stack.begin({ profile: { rpc: null, sponsor: null, maxInFlight: 1 } })
    const ids = [hashOf("first of a full lane"), hashOf("second of a full lane")]
    const before = await stack.nonce()
    node.behave(thenDoes(false, dies))
    const to = Address.unsafe(String(stack.counter.target))
    const transact = (n: number, rpc: string) =>
      runtime.runPromise(
        stack.transact({ to, funcSignature: "hit(bytes32)", funcParams: [ids[n] ?? ""] }, { rpc })
      )
    const first = transact(0, node.url)
    await expect.poll(async () => (await stack.openOf(runtime)).length, { timeout: 10_000 }).toBe(1)
    const second = await transact(1, stack.anvil.url)
    expect([(await first).status, second.status]).toEqual([1, 1])
    expect([await stack.counts(...ids), await stack.nonce()]).toEqual([[1, 1], before + 2])
    await runtime.dispose()
    await node.stop()
  })
})
