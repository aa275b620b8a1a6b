import * as Effect from "effect/Effect"
import { AbiCoder, type Contract, concat, Interface, id } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { type ChainRpc, callOf } from "../../../src/application/ports/chain/ChainRpc.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { create } from "../../support/suite/Chain.js"
import { configOf } from "../../support/suite/Keys.js"

/** What the aggregator gives more than it has: bytes behind each answer to a call of this function. */
let padded: { readonly function: string; readonly bytes: number } | null = null

const padding = (nodes: ChainRpc["Type"]): ChainRpc["Type"] => ({
  ...nodes,
  connect: (...args) =>
    Effect.map(nodes.connect(...args), (client) => ({
      ...client,
      call: (call, ...rest) =>
        Effect.map(client.call(call, ...rest), (result) => {
          const known =
            padded !== null && (callOf(call).data ?? "0x").startsWith(id(padded.function).slice(0, 10))
          if (padded === null || !known || !result.success) return result
          const [answer] = AbiCoder.defaultAbiCoder().decode(["bytes"], result.data)
          const more = concat([answer, `0x${"ab".repeat(padded.bytes)}`])
          return { ...result, data: Hex.unsafe(AbiCoder.defaultAbiCoder().encode(["bytes"], [more])) }
        })
    }))
})

let stack: Stack
let aggregator: Address.Address
let beacon: Address.Address
let wallets: ReadonlyArray<Address.Address>
beforeAll(async () => {
  stack = await startStack({ profile: { implementationCodeHash: null }, wrapChain: padding })
  const stranger = keyOf(8).connect(stack.provider) as ReturnType<typeof keyOf>
  const addressOf = async (contract: Contract) => Address.unsafe(await contract.getAddress())
  aggregator = await addressOf(await create("ProofAggregator", [], stranger))
  const implementation = await create(
    "AggregatedWallet",
    [...Object.values(entryPoints), stack.suite.validator, aggregator],
    stranger
  )
  beacon = await addressOf(
    await create("WalletBeacon", [await implementation.getAddress(), keyOf(5).address], stranger)
  )
  const made: Array<Address.Address> = []
  for (const _ of [1, 2]) {
    const address = await addressOf(await create("WalletProxy", [beacon, "0x"], stranger))
    const wallet = implementation.attach(address) as Contract
    const initialize = wallet.connect(stranger).getFunction("initialize")
    await (await initialize.send(configOf(1, [keyOf(1)]), keyOf(3).address)).wait()
    await stack.fund(address, 10n ** 18n)
    await stack.mint(address, 100n)
    made.push(address)
  }
  wallets = made
  await stack.create("plain")
  await stack.mint(stack.predict("plain"), 100n)
})
afterAll(() => stack.stop())

const to = Address.unsafe(`0x${"a9".repeat(20)}`)
const transfer = (wallet: Address.Address, amount: string, dependsOn?: number): Operation => ({
  wallet,
  walletCustody: 1,
  to: Address.unsafe(String(stack.token.target)),
  funcSignature: "transfer(address,uint256)",
  funcParams: [to, amount],
  ...(dependsOn !== undefined && { dependsOn })
})
const [first, second] = [() => wallets[0] ?? to, () => wallets[1] ?? to]

describe.each(entryPointVersions)("operations of one aggregator, on EntryPoint %s", (version) => {
  const settings = () => ({
    ...stack.settings,
    entryPoint: Address.unsafe(entryPoints[version]),
    beaconAdminAddress: beacon
  })
  const execute = (operations: ReadonlyArray<Operation>, more: object) =>
    ExecuteOperations.run(stack.caller(), { operations, settings: { ...settings(), ...more } })
  const handling = new Interface([
    version === "v0.6"
      ? "function handleAggregatedOps(((address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)[] ops,address aggregator,bytes signature)[] groups,address beneficiary)"
      : "function handleAggregatedOps(((address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)[] ops,address aggregator,bytes signature)[] groups,address beneficiary)"
  ])

  it("go through handleAggregatedOps, together, with one signature, and may depend on each other", async () => {
    const before = await stack.balanceOf(to)
    const result = await stack.ask(
      execute([transfer(second(), "2", 1), transfer(first(), "3"), transfer(first(), "4")], { aggregator })
    )
    expect(result.returnData.map((element, index) => element[index]?.error)).toEqual([null, null, null])
    expect(result).toMatchObject({ status: 1, txHashes: [result.txHash] })
    expect((await stack.balanceOf(to)) - before).toBe(9n)
    const transaction = await stack.provider.getTransaction(result.txHash)
    const [groups] = handling.decodeFunctionData("handleAggregatedOps", transaction?.data ?? "0x")
    expect(groups.length).toBe(1)
    expect(groups[0].aggregator).toBe(aggregator)
    expect(groups[0].ops.length).toBe(3)
  })

  it("that were handed out and signed elsewhere go the same way", async () => {
    const before = await stack.balanceOf(to)
    const named = { ...settings(), aggregator }
    const { error, userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: [transfer(first(), "1"), transfer(second(), "1")],
        settings: named
      })
    )
    expect(error).toBeNull()
    const result = await stack.ask(
      ExecuteEncoded.run(stack.caller(), {
        operations: userOps.map(({ encodedUserOp, signingHash, userOpHash }) => ({
          encodedUserOp: Hex.unsafe(encodedUserOp),
          userOpHash: Hex.unsafe32(userOpHash),
          walletCustody: 1,
          signature: Hex.unsafe(stack.signer.signingKey.sign(signingHash).serialized)
        })),
        settings: named
      })
    )
    expect(result).toMatchObject({ status: 1, txHashes: [result.txHash] })
    expect((await stack.balanceOf(to)) - before).toBe(2n)
    const transaction = await stack.provider.getTransaction(result.txHash)
    const [groups] = handling.decodeFunctionData("handleAggregatedOps", transaction?.data ?? "0x")
    expect([groups.length, groups[0].aggregator, groups[0].ops.length]).toEqual([1, aggregator, 2])
  })

  it("of requests at once never share a transaction with others", async () => {
    const before = await stack.balanceOf(to)
    const results = await Promise.all([
      stack.ask(execute([transfer(first(), "1")], { aggregator })),
      stack.ask(
        ExecuteOperations.run(stack.caller(), {
          operations: [transfer(stack.predict("plain"), "1")],
          settings: stack.settings
        })
      ),
      stack.ask(execute([transfer(second(), "1")], { aggregator }))
    ])
    expect(results.map(({ status }) => status)).toEqual([1, 1, 1])
    expect(new Set(results.map(({ txHash }) => txHash)).size).toBe(3)
    expect((await stack.balanceOf(to)) - before).toBe(3n)
  })

  it.each<[string, number]>([
    ["validateUserOpSignature", 1_000],
    ["aggregateSignatures", 1_000]
  ])("are refused when %s gives bytes that nobody has accounted for", async (name, bytes) => {
    const struct = UserOperation.structOf(version)
    const before = await stack.provider.getTransactionCount(stack.signer.address)
    padded = { function: `${name}(${struct}${name === "aggregateSignatures" ? "[]" : ""})`, bytes }
    try {
      const failure = await stack.refused(execute([transfer(first(), "1")], { aggregator }))
      expect(failure).toMatchObject({
        code: "aggregator_refused",
        message: expect.stringMatching(/signature: it gave [0-9]+ bytes, expected at most [0-9]+$/)
      })
    } finally {
      padded = null
    }
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before)
  })

  it("without its name, or of wallets that name none, are refused, and nothing is sent", async () => {
    const before = await stack.provider.getTransactionCount(stack.signer.address)
    for (const refused of [
      execute([transfer(first(), "1")], {}),
      execute([transfer(stack.predict("plain"), "1")], {
        aggregator,
        beaconAdminAddress: Address.unsafe(stack.suite.beacon)
      }),
      execute([transfer(first(), "1")], { aggregator: to })
    ])
      expect(await stack.refused(refused)).toMatchObject({ _tag: "Unprocessable" })
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before)
  })
})
