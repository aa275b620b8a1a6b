import * as Result from "effect/Result"
import { concat, Interface, toBeHex, zeroPadValue } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import type * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { npmInterface, reverterAbi, tokenAbi } from "./Abis.js"
import { compile } from "./Solidity.js"
import { created, ecdsaWallet, execute, opOf, type TestWallet } from "./Wallets.js"
import { holder, type Op, useWorld } from "./World.js"

let paymaster: Address.Address
const world = useWorld(undefined, async (world) => {
  paymaster = await world.deploy(compile(new URL("Paymaster.sol", import.meta.url))("Paymaster").code)
})

const noOvershoot = { bound: 30_000_000n, overshoot: Percent.zero }
const stake = new Interface(["function depositTo(address) payable"])
const half = (value: bigint) => zeroPadValue(toBeHex(value), 16)

describe.each(versions)("an op with a paymaster on %s", (version: Version) => {
  let wallet: TestWallet
  beforeAll(async () => {
    wallet = await created(world, version, await ecdsaWallet(world, `sponsored ${version}`))
  })

  const transfer = () => execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
  /** Uses all its gas and fails. */
  const burn = () => execute(world.reverter, 0n, reverterAbi.encodeFunctionData("failOutOfGas"))

  /** 60,000 gas for the paymaster's validation, 150,000 for its postOp; v0.6 gives verificationGasLimit to each. */
  const sponsored = (nonce: bigint, callData = transfer()): Promise<Op> => {
    const limits = version === "v0.6" ? [] : [half(60_000n), half(150_000n)]
    return world.sign(
      version,
      {
        ...opOf(wallet, nonce, callData),
        callGasLimit: 50_000n,
        verificationGasLimit: 90_000n,
        paymasterAndData: Hex.unsafe(concat([paymaster, ...limits]))
      },
      wallet.prove
    )
  }
  const entryPoint = () => world.entryPoint(version)

  it("an op takes exactly the formula's prefund from its paymaster's deposit, to the wei", async () => {
    const op = await sponsored(1n)
    const prefund = Gas.requiredPrefund(version, op)
    await world.send(entryPoint(), stake.encodeFunctionData("depositTo", [paymaster]), prefund - 1n)
    const short = await world.simulate(version, [op])
    expect(npmInterface(version, "EntryPoint").parseError(short.reverted ?? "0x")?.args[1]).toMatch(/^AA31 /)
    await world.send(entryPoint(), stake.encodeFunctionData("depositTo", [paymaster]), 1n)
    expect(await world.simulate(version, [op])).toMatchObject({ reverted: null, success: true })
  })

  it("an op fits the transaction's gas with a postOp that uses all of its gas, singly and in a bundle of twelve", async () => {
    await world.send(entryPoint(), stake.encodeFunctionData("depositTo", [paymaster]), 10n ** 18n)
    for (const count of [1, 12]) {
      const ops: Array<Op> = []
      for (let i = 0; i < count; i += 1)
        ops.push(
          await sponsored((BigInt(20 + count) << 64n) | BigInt(i), version === "v0.6" ? burn() : transfer())
        )
      const gasLimit = Result.getOrThrow(Gas.transactionGasLimit(version, ops, noOvershoot))
      const outcome = await world.simulate(version, ops, gasLimit)
      expect(outcome, `${count} ops`).toMatchObject({
        reverted: null,
        events: count,
        success: version !== "v0.6"
      })
      expect(outcome.usedGas).toBeGreaterThan(BigInt(count) * (version === "v0.6" ? 90_000n : 150_000n))
      if (count === 1) continue
      const without = Gas.transactionGasLimit(
        version,
        ops.map((op) => ({ ...op, paymasterAndData: Hex.empty })),
        noOvershoot
      )
      const starved = await world.simulate(version, ops, Result.getOrThrow(without))
      const fails = starved.reverted !== null || starved.success !== outcome.success
      expect(fails, `${count} ops without the paymaster's gas`).toBe(true)
    }
  })
})
