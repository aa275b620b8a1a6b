import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Executed } from "../../../src/application/answers/TransactionResult.js"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import { type Question, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { type Runtime, useStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"

const most = "f".repeat(64)

describe("a node with senseless figures", () => {
  const stack = useStack({}, (stack) => stack.create("figured"))
  const node = use(() => startFaultyNode(stack.anvil.url))
  /** A life with a short receipt time-out: most replies lack a receipt. */
  let hasty: Runtime
  beforeAll(async () => {
    hasty = stack.begin({ profile: { receiptTimeoutMillis: 200 } })
  })
  afterAll(async () => {
    await hasty.dispose()
  })

  /** Only answers that can be encoded, and failures that the interface defines. */
  const answersWell = async (change: (question: Question, result: unknown) => unknown) => {
    node.behave(async (question, ask) => {
      const answer = await ask()
      return "result" in answer ? { result: change(question, answer.result) } : answer
    })
    const operation = stack.pay("figured", "0x000000000000000000000000000000000000dEaD", 0n)
    const request = {
      operations: [operation, operation],
      settings: { ...stack.settings, rpc: node.url }
    }
    const asked = Effect.all([
      Effect.result(stack.execute(request.operations, request.settings)),
      Effect.result(EstimateGas.run(stack.caller(), request))
    ])
    const exit = await hasty.runPromiseExit(asked)
    if (Exit.isFailure(exit)) throw new Error(String(exit.cause))
    const [executed, estimated] = exit.value
    if (executed._tag === "Success") Schema.encodeSync(Executed)(executed.success)
    if (estimated._tag === "Success") Schema.encodeSync(EstimateGas.Response)(estimated.success)
  }

  it("does not crash the service by any word of a measurement", async () => {
    let words = 1
    for (let position = 0; position < words; position += 1)
      await answersWell(({ method, params }, result) => {
        const [call] = params as ReadonlyArray<{ readonly to?: string }>
        if (method !== "eth_call" || call?.to !== stack.settings.entryPoint) return result
        const found = String(result).slice(2).match(/.{64}/g) ?? []
        words = Math.min(found.length, 80)
        found[position] = most
        return `0x${found.join("")}`
      })
    expect(words).toBeGreaterThan(40)
  })

  const receipt = ["status", "blockNumber", "gasUsed", "cumulativeGasUsed", "effectiveGasPrice"]
  it.each([
    ["eth_getBlockByNumber", ["timestamp", "gasLimit", "number", "baseFeePerGas"]],
    ["eth_getTransactionReceipt", receipt]
  ])("does not crash the service by any field of %s", async (name, fields) => {
    for (const field of fields)
      for (const value of [`0x${most}`, "0x0"])
        await answersWell(({ method }, result) =>
          method === name && result !== null && typeof result === "object"
            ? { ...result, [field]: value }
            : result
        )
  })

  it.each([
    "eth_maxPriorityFeePerGas",
    "eth_getTransactionCount",
    "eth_getBalance",
    "eth_getCode",
    "eth_feeHistory"
  ])("does not crash the service by its answer to %s", async (name) => {
    for (const value of [`0x${most}`, "0x0", null])
      await answersWell(({ method }, result) => (method === name ? value : result))
  })
})
