import { createServer } from "node:http"
import { text } from "node:stream/consumers"
import { describe, expect, it } from "@effect/vitest"
import { Transaction, Wallet } from "ethers"
import { devKeys } from "../../../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../../../src/hosts/cli/support/NodeProvider.js"
import * as Port from "../../../support/process/Port.js"

const word = `0x${"11".repeat(32)}`

/** A chain that mines block 7 with the transaction after two receipt queries, and no later block. */
const startNode = async () => {
  let looks = 0
  let hash = word
  const answer = (method: string, params: ReadonlyArray<string>): unknown => {
    switch (method) {
      case "eth_chainId":
        return "0x7a69"
      case "eth_sendRawTransaction":
        hash = Transaction.from(params[0]).hash ?? word
        return hash
      case "eth_blockNumber":
        return looks > 1 ? "0x7" : "0x6"
      case "eth_getTransactionReceipt": {
        const receipt = {
          ...{
            transactionHash: hash,
            transactionIndex: "0x0",
            blockHash: word,
            blockNumber: "0x7",
            type: "0x2"
          },
          ...{ from: devKeys.faucet.address, to: devKeys.faucet.address, contractAddress: null, logs: [] },
          ...{ logsBloom: `0x${"00".repeat(256)}`, status: "0x1" },
          ...{ gasUsed: "0x5208", cumulativeGasUsed: "0x5208", effectiveGasPrice: "0x1" }
        }
        looks += 1
        return looks > 2 ? receipt : null
      }
      case "eth_getTransactionCount":
        return "0x0"
      default:
        return null
    }
  }
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request))
    const one = ({ id, method, params }: { id: number; method: string; params: ReadonlyArray<string> }) => ({
      jsonrpc: "2.0",
      id,
      result: answer(method, params)
    })
    response.end(JSON.stringify(Array.isArray(body) ? body.map(one) : one(body)))
  })
  const port = await Port.listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => server.close()
  }
}

describe("a transaction that is waited for", () => {
  it("a transaction is found in a block mined between its receipt query and the first chain query", async () => {
    const node = await startNode()
    const provider = new NodeProvider(node.url, 31_337, {
      staticNetwork: true,
      cacheTimeout: -1,
      pollingInterval: 10
    })
    try {
      const signed = await new Wallet(devKeys.faucet.privateKey).signTransaction({
        to: devKeys.faucet.address,
        chainId: 31_337,
        nonce: 0,
        gasLimit: 21_000,
        maxFeePerGas: 1,
        maxPriorityFeePerGas: 1,
        type: 2
      })
      const sent = await provider.broadcastTransaction(signed)
      expect((await sent.wait())?.blockNumber).toBe(7)
    } finally {
      provider.destroy()
      node.stop()
    }
  }, 10_000)
})
