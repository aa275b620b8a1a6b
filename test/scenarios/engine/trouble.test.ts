import { id as hashOf } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import { type FaultyNode, honest, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

/** A simulation of the signed bundle: the request is accepted by then, and nothing of it is sent. */
const simulation = "eth_simulateV1"

describe("a node that fails between acceptance and the signature of the transaction", () => {
  let stack: Stack
  let node: FaultyNode
  let counter: Address.Address
  beforeAll(async () => {
    stack = await startStack({ profile: { receiptTimeoutMillis: 3_000 } })
    node = await startFaultyNode(stack.anvil.url)
    counter = Address.unsafe(await stack.counter.getAddress())
    await stack.create("wallet")
  })
  afterAll(async () => {
    await node.stop()
    await stack.stop()
  })
  beforeEach(() => node.behave())

  const execute = (id: string) =>
    ExecuteOperations.run(stack.caller(), {
      operations: [
        { salt: "wallet", walletCustody: 1, to: counter, funcSignature: "hit(bytes32)", funcParams: [id] }
      ],
      settings: { ...stack.settings, rpc: node.url }
    })
  const countOf = async (id: string) => Number(await stack.counter.getFunction("count")(id))
  const sentBy = () => stack.provider.getTransactionCount(stack.signer.address)

  /** The node fails so often at the simulation, and then does what it is asked. */
  const failing = (times: number, answer: ReturnType<typeof refusal> | null) => {
    let asked = 0
    node.behave((question, ask) => {
      if (question.method !== simulation || asked >= times) return honest(question, ask)
      asked += 1
      return Promise.resolve(answer)
    })
    return () => asked
  }

  it.each([
    ["hangs up", 3, null],
    ["answers with an error", 2, refusal(-32_000, "no")],
    ["says that it cannot answer now", 12, refusal(-32_603, "Internal error")]
  ])("and %s a few times only is asked again: the op lands, once", async (what, times, answer) => {
    const id = hashOf(`passing ${what}`)
    const asked = failing(times, answer)
    const before = await sentBy()
    const result = await stack.ask(execute(id))
    expect(result.status).toBe(1)
    expect(asked()).toBe(times)
    expect(await countOf(id)).toBe(1)
    expect(await sentBy()).toBe(before + 1)
  })

  it.each([
    ["to hang up", null],
    ["to answer with errors", refusal(-32_000, "no")],
    ["to say -32603", refusal(-32_603, "Internal JSON-RPC error.")],
    ["to say -32011", refusal(-32_011, "no backends available for method")],
    ["to say 502", refusal(-32_000, "502 Bad Gateway")],
    ["not to find the block", refusal(-32_000, "header not found")]
  ])(
    "and goes on %s is 422 outcome_unknown with nothing sent: the op lands once the node is back, once",
    async (what, answer) => {
      const id = hashOf(`lasting ${what}`)
      failing(Number.POSITIVE_INFINITY, answer)
      const before = await sentBy()
      const failure = await stack.refused(execute(id))
      expect(failure).toMatchObject({ _tag: "Unprocessable", code: "outcome_unknown" })
      expect(await sentBy()).toBe(before)
      node.behave()
      await expect.poll(() => countOf(id), { timeout: 20_000 }).toBe(1)
      const next = hashOf(`next after ${what}`)
      expect((await stack.ask(execute(next))).status).toBe(1)
      expect([await countOf(id), await countOf(next)]).toEqual([1, 1])
    }
  )
})
