import { createSmartAccountClient } from "permissionless"
import { toSimpleSmartAccount } from "permissionless/accounts"
import { createPimlicoClient } from "permissionless/clients/pimlico"
import { createPublicClient, encodeFunctionData, http, parseAbi } from "viem"
import { entryPoint07Address } from "viem/account-abstraction"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { answer, cpuMillis } from "./answer.mjs"

/** The usual TypeScript stack instead of castellan: permissionless with alto. */

const tokenAbi = parseAbi(["function transfer(address to, uint256 value) returns (bool)"])
const pollingInterval = 20
/** Time-out of an HTTP request, in ms: the default of ten seconds is too short on a busy machine. */
const timeout = 60_000

let clients

const op = async (client, recipients, token) => {
  const hash = await client.sendUserOperation({
    calls: recipients.map((to) => ({
      to: token,
      value: 0n,
      data: encodeFunctionData({ abi: tokenAbi, functionName: "transfer", args: [to, 1n] })
    }))
  })
  const { success } = await client.waitForUserOperationReceipt({ hash, pollingInterval })
  if (!success) throw new Error(`an op failed: ${hash}`)
}

answer({
  setup: async ({ bundler, count, factory, ownerKey, rpc }) => {
    const publicClient = createPublicClient({ chain: foundry, transport: http(rpc), pollingInterval })
    const entryPoint = { address: entryPoint07Address, version: "0.7" }
    const pimlico = createPimlicoClient({ chain: foundry, transport: http(bundler, { timeout }), entryPoint })
    const owner = privateKeyToAccount(ownerKey)
    clients = []
    for (let index = 0n; index < count; index++) {
      const account = await toSimpleSmartAccount({
        client: publicClient,
        owner,
        factoryAddress: factory,
        index,
        entryPoint
      })
      clients.push(
        createSmartAccountClient({
          account,
          chain: foundry,
          bundlerTransport: http(bundler, { timeout }),
          client: publicClient,
          pollingInterval,
          userOperation: {
            estimateFeesPerGas: async () => (await pimlico.getUserOperationGasPrice()).fast
          }
        })
      )
    }
    return clients.map(({ account }) => account.address)
  },
  /** Runs callers in a closed loop, each with a separate wallet. */
  run: async ({ callers, millis, most, recipient, token }) => {
    const latencies = []
    const cpu = cpuMillis()
    const began = performance.now()
    let begun = 0
    await Promise.all(
      clients.slice(0, callers).map(async (client) => {
        while (performance.now() - began < millis && begun < most) {
          begun += 1
          const from = performance.now()
          await op(client, [recipient], token)
          latencies.push(performance.now() - from)
        }
      })
    )
    const seconds = (performance.now() - began) / 1_000
    return { ops: latencies.length, seconds, latencies, cpuMillis: cpuMillis() - cpu }
  }
})
