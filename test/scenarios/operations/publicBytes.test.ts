import * as Effect from "effect/Effect"
import { AbiCoder, Contract, hexlify, id as idOf, keccak256, randomBytes } from "ethers"
import { expect, it } from "vitest"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { keyOf, useStack } from "../../support/stack/Stack.js"

/**
 * A reverted bundle's ops are public, and any later transaction of their submitter may execute them: together with
 * their replacement they must be done once.
 */

const entryPoint = entryPoints["v0.7"]
/** Receipts are returned once this is resolved. */
let told: Promise<void> = Promise.resolve()
const known = new Map<ChainClient, ChainClient>()

/** The same node, with late receipts. */
const late = (client: ChainClient): ChainClient => ({
  ...client,
  receipt: (txHash) =>
    Effect.andThen(
      Effect.promise(() => told),
      client.receipt(txHash)
    )
})

const stack = useStack(
  {
    profile: { receiptTimeoutMillis: 30_000 },
    wrapChain: ({ connect }) => ({
      connect: (url, by) =>
        Effect.map(connect(url, by), (client) => {
          const own = known.get(client) ?? late(client)
          known.set(client, own)
          return own
        })
    })
  },
  (stack) => stack.create("before")
)

/** Begins the request, lets its bundle revert, and loads a copy of its ops; the revert is not reported yet. */
const revertAndCopy = async (salt: string, ids: ReadonlyArray<string>) => {
  const wallet = stack.predict(salt)
  const owner = keyOf(8).connect(stack.provider)
  const at = await deploy(stack.faucet, initCode("Nester"), hexlify(randomBytes(32)))
  const nester = new Contract(at, artifact("Nester").abi, owner)
  await stack.automine(false)
  // Two ops of one wallet; the first pays.
  const operations = ids.map((id, index) => stack.hit(salt, id, { value: index === 0 ? 1_000n : 0n }))
  const answer = stack.ask(stack.execute(operations))
  const [pending] = await stack.pooled(1)
  let tell = () => {}
  told = new Promise((resolve) => {
    tell = resolve
  })
  const bundle = pending?.input ?? "0x"
  const balance = await stack.provider.getBalance(wallet)
  const slot = keccak256(AbiCoder.defaultAbiCoder().encode(["address", "uint256"], [wallet, 0]))
  const deposit = await stack.provider.send("eth_getStorageAt", [entryPoint, slot, "latest"])
  const has = async (wei: bigint, word: string) => {
    await stack.fund(wallet, wei)
    await stack.provider.send("anvil_setStorageAt", [entryPoint, slot, word])
  }
  await has(0n, `0x${"00".repeat(32)}`)
  await stack.mine()
  await has(balance, deposit)
  const types = [`${UserOperation.structOf("v0.7")}[]`, "address"]
  const [ops] = AbiCoder.defaultAbiCoder().decode(types, `0x${bundle.slice(10)}`)
  const copied = AbiCoder.defaultAbiCoder().encode(types, [[...ops], keyOf(9).address])
  await nester.getFunction("load").send(entryPoint, bundle.slice(0, 10) + copied.slice(2), {
    gasLimit: 8_000_000n
  })
  await stack.mine()
  return { answer, nester, tell }
}

it("operations of a reverted bundle that a later transaction of its submitter executes before they go again: the wallet pays once, and the answer names that transaction", async () => {
  const ids = [idOf("before 1"), idOf("before 2")]
  const paid = () => stack.provider.getBalance(String(stack.counter.target))
  const before = await paid()
  const { answer, nester, tell } = await revertAndCopy("before", ids)
  const data = nester.interface.encodeFunctionData("run", [0])
  const signer = stack.signer.connect(stack.provider)
  const { hash: txHash } = await signer.sendTransaction({ to: nester.target, data, gasLimit: 2_000_000n })
  await stack.mine()
  await stack.automine(true)
  tell()
  const result = await answer
  expect(await stack.counts(...ids)).toEqual([1, 1])
  expect((await paid()) - before).toBe(1_000n)
  expect(result).toMatchObject({ status: 1, returnData: [{ "0": { txHash } }, { "1": { txHash } }] })
})
