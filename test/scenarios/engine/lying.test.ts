import { Transaction } from "ethers"
import { expect, it } from "vitest"
import { refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { keyOf, useStack } from "../../support/stack/Stack.js"

const stack = useStack({ profile: { receiptTimeoutMillis: 1_500 } }, (stack) => stack.create("victim"))

it("a node that lies about a wallet's owner takes no nonce key from the owner's own requests", async () => {
  const node = await startFaultyNode(stack.anvil.url)
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
  const operation = stack.pay("victim", "0x000000000000000000000000000000000000dEaD", 0n)
  const settings = { rpc: node.url, signer: { clientId: "dev", versionId: "2" } }
  const lies = await Promise.all(
    Array.from({ length: 16 }, () => stack.refused(stack.execute([operation], settings)))
  )
  expect(lies.map(({ code }) => code)).toEqual(Array(16).fill("outcome_unknown"))
  expect((await stack.ask(stack.execute([operation]))).status).toBe(1)
  await node.stop()
})
