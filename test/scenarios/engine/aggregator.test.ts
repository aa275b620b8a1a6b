import * as Effect from "effect/Effect"
import { AbiCoder, type Contract, concat, Interface, id } from "ethers"
import { describe, expect, it } from "vitest"
import type { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { Address, errorsOf, keyOf, useStack } from "../../support/stack/Stack.js"
import { create } from "../../support/suite/Chain.js"
import { configOf } from "../../support/suite/Keys.js"

/** The aggregator's padding: a thousand bytes after each reply to this function. */
let padded: string | null = null

const padding = (nodes: ChainRpc["Service"]): ChainRpc["Service"] => ({
  ...nodes,
  connect: (...args) =>
    Effect.map(nodes.connect(...args), (client) => ({
      ...client,
      call: (call, ...rest) =>
        Effect.map(client.call(call, ...rest), (result) => {
          const isIt = padded !== null && (call.data ?? "0x").startsWith(id(padded).slice(0, 10))
          if (!isIt || !result.success) return result
          const [answer] = AbiCoder.defaultAbiCoder().decode(["bytes"], result.data)
          const more = concat([answer, `0x${"ab".repeat(1_000)}`])
          return { ...result, data: Hex.unsafe(AbiCoder.defaultAbiCoder().encode(["bytes"], [more])) }
        })
    }))
})

let aggregator: Address.Address
let beacon: Address.Address
let first: Address.Address
let second: Address.Address
const stack = useStack({ profile: { implementationCodeHash: null }, wrapChain: padding }, async (stack) => {
  const stranger = keyOf(8).connect(stack.provider) as ReturnType<typeof keyOf>
  const made = async (contract: Promise<Contract>) => Address.unsafe(await (await contract).getAddress())
  aggregator = await made(create("ProofAggregator", [], stranger))
  const implementation = await create(
    "AggregatedWallet",
    [...Object.values(entryPoints), stack.suite.validator, aggregator],
    stranger
  )
  beacon = await made(create("WalletBeacon", [await implementation.getAddress(), keyOf(5).address], stranger))
  const wallet = async () => {
    const address = await made(create("WalletProxy", [beacon, "0x"], stranger))
    const initialize = (implementation.attach(address) as Contract)
      .connect(stranger)
      .getFunction("initialize")
    await (await initialize.send(configOf(1, [keyOf(1)]), keyOf(3).address)).wait()
    await stack.fund(address, 10n ** 18n)
    await stack.mint(address, 100n)
    return address
  }
  ;[first, second] = [await wallet(), await wallet()]
  await stack.create("plain")
  await stack.mint(stack.predict("plain"), 100n)
})

const to = Address.unsafe(`0x${"a9".repeat(20)}`)
const transfer = (wallet: Address.Address, amount: string, dependsOn?: number): Operation => ({
  walletCustody: 1,
  wallet,
  to: Address.unsafe(String(stack.token.target)),
  funcSignature: "transfer(address,uint256)",
  funcParams: [to, amount],
  ...(dependsOn !== undefined && { dependsOn })
})
const at = (version: Version) => ({
  entryPoint: Address.unsafe(entryPoints[version]),
  beaconAdminAddress: beacon
})
const groupsOf = async (version: Version, txHash: string) => {
  const op =
    version === "v0.6"
      ? "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
      : "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"
  const handling = new Interface([
    `function handleAggregatedOps((${op}[] ops,address aggregator,bytes signature)[] groups,address beneficiary)`
  ])
  const transaction = await stack.provider.getTransaction(txHash)
  const [groups] = handling.decodeFunctionData("handleAggregatedOps", transaction?.data ?? "0x")
  return groups.map((group: { aggregator: string; ops: ReadonlyArray<unknown> }) => [
    group.aggregator,
    group.ops.length
  ])
}

describe("operations of one aggregator", () => {
  it.each(["v0.6", "v0.7", "v0.8"] as const)(
    "go through handleAggregatedOps of %s, together, with one signature, and may depend on each other",
    async (version) => {
      const before = await stack.balanceOf(to)
      const operations = [transfer(second, "2", 1), transfer(first, "3"), transfer(first, "4")]
      const result = await stack.ask(stack.execute(operations, { ...at(version), aggregator }))
      expect(errorsOf(result)).toEqual([null, null, null])
      expect(result).toMatchObject({ status: 1, txHashes: [result.txHash] })
      expect((await stack.balanceOf(to)) - before).toBe(9n)
      expect(await groupsOf(version, result.txHash)).toEqual([[aggregator, 3]])
    }
  )

  it("issued and signed elsewhere go the same way", async () => {
    const before = await stack.balanceOf(to)
    const settings = { ...at("v0.7"), aggregator }
    const { error, userOps } = await stack.estimate([transfer(first, "1"), transfer(second, "1")], settings)
    expect(error).toBeNull()
    const result = await stack.ask(stack.post(userOps, "signingHash", settings))
    expect(result).toMatchObject({ status: 1, txHashes: [result.txHash] })
    expect((await stack.balanceOf(to)) - before).toBe(2n)
    expect(await groupsOf("v0.7", result.txHash)).toEqual([[aggregator, 2]])
  })

  it("never share a transaction with others in concurrent requests", async () => {
    const before = await stack.balanceOf(to)
    const results = await Promise.all(
      [
        stack.execute([transfer(first, "1")], { ...at("v0.7"), aggregator }),
        stack.execute([transfer(stack.predict("plain"), "1")]),
        stack.execute([transfer(second, "1")], { ...at("v0.7"), aggregator })
      ].map(stack.ask)
    )
    expect(results.map(({ status }) => status)).toEqual([1, 1, 1])
    expect(new Set(results.map(({ txHash }) => txHash)).size).toBe(3)
    expect((await stack.balanceOf(to)) - before).toBe(3n)
  })

  it.each(["validateUserOpSignature", "aggregateSignatures"])(
    "are refused when %s returns unaccounted bytes",
    async (name) => {
      const before = await stack.nonce()
      padded = `${name}(${UserOperation.structOf("v0.7")}${name === "aggregateSignatures" ? "[]" : ""})`
      const settings = { ...at("v0.7"), aggregator }
      const failure = await stack.refused(stack.execute([transfer(first, "1")], settings)).finally(() => {
        padded = null
      })
      expect(failure).toMatchObject({
        code: "aggregator_refused",
        message: expect.stringMatching(/signature: it gave [0-9]+ bytes, expected at most [0-9]+$/)
      })
      expect(await stack.nonce()).toBe(before)
    }
  )

  it("without its name, or of wallets without one, are refused, and none is sent", async () => {
    const before = await stack.nonce()
    for (const refused of [
      stack.execute([transfer(first, "1")], at("v0.7")),
      stack.execute([transfer(stack.predict("plain"), "1")], { aggregator }),
      stack.execute([transfer(first, "1")], { ...at("v0.7"), aggregator: to })
    ])
      expect(await stack.refused(refused)).toMatchObject({ _tag: "Unprocessable" })
    expect(await stack.nonce()).toBe(before)
  })
})
