import { Transaction } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import { type FaultyNode, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

describe("a node that lies about who owns a wallet", () => {
  let stack: Stack
  let node: FaultyNode
  beforeAll(async () => {
    stack = await startStack({ profile: { receiptTimeoutMillis: 1_500 } })
    node = await startFaultyNode(stack.anvil.url)
    await stack.create("victim")
  })
  afterAll(async () => {
    await node.stop()
    await stack.stop()
  })

  it("takes no nonce key from the owner's own requests", async () => {
    const owner = stack.signer.address.slice(2).toLowerCase()
    const liar = keyOf(6).address.slice(2).toLowerCase()
    node.behave(async (call, ask) => {
      if (call.method === "eth_simulateV1") return refusal(-32601, "method not found")
      if (call.method === "eth_sendRawTransaction")
        return { result: Transaction.from(String(call.params[0])).hash }
      if (call.method === "eth_getTransactionReceipt") return { result: null }
      if (call.method === "eth_call" && JSON.stringify(call.params).includes("0x765e827f"))
        return { result: "0x" }
      return JSON.parse(JSON.stringify(await ask()).replaceAll(owner, liar))
    })
    const execute = (versionId: string, rpc: string) =>
      ExecuteOperations.run(stack.caller(), {
        operations: [
          {
            wallet: stack.predict("victim"),
            walletCustody: 1,
            to: dead,
            funcSignature: "receive()",
            value: 0n
          }
        ],
        settings: { ...stack.settings, rpc, signer: { clientId: "dev", versionId } }
      })
    const lies = await Promise.all(Array.from({ length: 16 }, () => stack.refused(execute("2", node.url))))
    expect(lies.map(({ code }) => code)).toEqual(Array(16).fill("outcome_unknown"))
    expect((await stack.ask(execute("1", stack.anvil.url))).status).toBe(1)
  })
})
