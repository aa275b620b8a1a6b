import * as Effect from "effect/Effect"
import { AbiCoder, Contract, hexlify, id as idOf, keccak256, randomBytes } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { LaneSlots } from "../../../src/application/lanes/LaneSlot.js"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"

/**
 * What a reverted bundle carried is public, and any later transaction of its submitter may execute it: with what is sent
 * in its place it must be done once.
 */

const entryPoint = entryPoints["v0.7"]

let stack: Stack
let counter: Address.Address
let nester: Contract
/** Receipts are told once this is resolved. */
let told: Promise<void> = Promise.resolve()

/** The same node, whose receipts come late. */
const late = (client: ChainClient): ChainClient => ({
  ...client,
  receipt: (txHash) =>
    Effect.zipRight(
      Effect.promise(() => told),
      client.receipt(txHash)
    )
})

beforeAll(async () => {
  const known = new Map<ChainClient, ChainClient>()
  stack = await startStack({
    profile: { receiptTimeoutMillis: 30_000 },
    wrapChain: ({ connect }) => ({
      connect: (url, by) =>
        Effect.map(connect(url, by), (client) => {
          const own = known.get(client) ?? late(client)
          known.set(client, own)
          return own
        })
    })
  })
  counter = Address.unsafe(await stack.counter.getAddress())
  await stack.create("payer", "second")
})
afterAll(() => stack.stop())
afterEach(() => stack.provider.send("evm_setAutomine", [true]))

const countOf = async (id: string): Promise<number> => Number(await stack.counter.getFunction("count")(id))

/** Two ops of one wallet, of which the first pays. */
const pay = (ids: ReadonlyArray<string>, salt: string): ReadonlyArray<Operation> =>
  ids.map((id, index) => ({
    salt,
    walletCustody: 1,
    to: counter,
    value: index === 0 ? 1_000n : 0n,
    funcSignature: "hit(bytes32)",
    funcParams: [id]
  }))

const paid = () => stack.provider.getBalance(counter)

const execute = (operations: ReadonlyArray<Operation>) =>
  stack.ask(
    ExecuteOperations.run(stack.caller(), {
      operations,
      settings: { ...stack.settings, entryPoint: Address.unsafe(entryPoint) }
    })
  )

const pending = async (): Promise<ReadonlyArray<{ readonly to: string; readonly input: string }>> => {
  const content = await stack.provider.send("txpool_content", [])
  const own = Object.entries<object>(content.pending).find(
    ([from]) => from.toLowerCase() === stack.signer.address.toLowerCase()
  )
  return Object.values(own?.[1] ?? {})
}

const mine = () => stack.provider.send("evm_mine", [])

const waiting = () =>
  stack.ask(
    Effect.map(LaneSlots, (slots) =>
      slots.waiting({ chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(stack.signer.address) })
    )
  )

/** Begins the request, lets its bundle revert, and loads a copy of its ops; what has happened is not told yet. */
const revertAndCopy = async (operations: ReadonlyArray<Operation>, wallet: string) => {
  const owner = keyOf(8).connect(stack.provider)
  nester = new Contract(
    await deploy(stack.faucet, initCode("Nester"), hexlify(randomBytes(32))),
    artifact("Nester").abi,
    owner
  )
  await stack.provider.send("evm_setAutomine", [false])
  const answer = execute(operations)
  await expect.poll(async () => (await pending()).length, { timeout: 10_000 }).toBe(1)
  let tell = () => {}
  told = new Promise((resolve) => {
    tell = resolve
  })
  const bundle = (await pending())[0]?.input ?? "0x"
  const balance = await stack.provider.getBalance(wallet)
  const deposit = await stack.provider.send("eth_getStorageAt", [entryPoint, depositSlot(wallet), "latest"])
  await stack.fund(wallet, 0n)
  await stack.provider.send("anvil_setStorageAt", [entryPoint, depositSlot(wallet), `0x${"00".repeat(32)}`])
  await mine()
  await stack.fund(wallet, balance)
  await stack.provider.send("anvil_setStorageAt", [entryPoint, depositSlot(wallet), deposit])
  const types = [`${UserOperation.structOf("v0.7")}[]`, "address"]
  const [ops] = AbiCoder.defaultAbiCoder().decode(types, `0x${bundle.slice(10)}`)
  const copied = AbiCoder.defaultAbiCoder().encode(types, [[...ops], keyOf(9).address])
  await nester.getFunction("load").send(entryPoint, bundle.slice(0, 10) + copied.slice(2), {
    gasLimit: 8_000_000n
  })
  await mine()
  return { answer, tell }
}

const depositSlot = (wallet: string): string =>
  keccak256(AbiCoder.defaultAbiCoder().encode(["address", "uint256"], [wallet, 0]))

const run = (): Promise<{ readonly txHash: string }> => {
  const { rpc, signer } = stack.settings
  return stack.ask(
    TransactSigner.run(stack.caller(), {
      to: Address.unsafe(String(nester.target)),
      funcSignature: "run(uint256)",
      funcParams: ["0"],
      settings: { rpc, signer }
    })
  )
}

describe("operations of a reverted bundle that a later transaction of its submitter executes", () => {
  it("while they wait to go again: the wallet pays once, and the answer names that transaction", async () => {
    const ids = [idOf("while 1"), idOf("while 2")]
    const before = await paid()
    const wallet = stack.predict("payer")
    const { answer, tell } = await revertAndCopy(pay(ids, "payer"), wallet)
    const theirs = run()
    await expect
      .poll(async () => (await pending()).map((each) => each.to.toLowerCase()), { timeout: 10_000 })
      .toEqual([String(nester.target).toLowerCase()])
    tell()
    await expect.poll(waiting, { timeout: 10_000 }).toBe(1)
    await mine()
    await stack.provider.send("evm_setAutomine", [true])
    const { txHash } = await theirs
    const result = await answer
    expect(await Promise.all(ids.map(countOf))).toEqual([1, 1])
    expect((await paid()) - before).toBe(1_000n)
    expect(result.status).toBe(1)
    expect(result.returnData.map((each, index) => each[index]?.txHash)).toEqual([txHash, txHash])
  })

  it("before they go again: the wallet pays once, and the answer names that transaction", async () => {
    const ids = [idOf("before 1"), idOf("before 2")]
    const before = await paid()
    const wallet = stack.predict("second")
    const { answer, tell } = await revertAndCopy(pay(ids, "second"), wallet)
    const theirs = await stack.signer.connect(stack.provider).sendTransaction({
      to: nester.target,
      data: nester.interface.encodeFunctionData("run", [0]),
      gasLimit: 2_000_000n
    })
    await mine()
    await stack.provider.send("evm_setAutomine", [true])
    tell()
    const result = await answer
    expect(await Promise.all(ids.map(countOf))).toEqual([1, 1])
    expect((await paid()) - before).toBe(1_000n)
    expect(result.status).toBe(1)
    expect(result.returnData.map((each, index) => each[index]?.txHash)).toEqual([theirs.hash, theirs.hash])
  })
})
