import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import { npmInterface, reverterAbi, tokenAbi } from "./Abis.js"
import { created, ecdsaWallet, execute, executeBatch, opOf, type TestWallet, withLimits } from "./Wallets.js"
import { holder, type Op, useWorld } from "./World.js"

const world = useWorld()

const generous = { callGasLimit: 300_000n, verificationGasLimit: 500_000n }

const create = async (version: Version, salt: string): Promise<TestWallet> =>
  created(world, version, await ecdsaWallet(world, `${salt} ${version}`))

/** Ops signed under the limits from one lens call over all of them. */
const estimated = async (
  version: Version,
  steps: ReadonlyArray<readonly [TestWallet, Op]>
): Promise<ReadonlyArray<Op>> => {
  const dummied = steps.map(([wallet, op]) => ({ wallet, op: world.dummied({ ...op, ...generous }) }))
  const measures = await world.measure(
    version,
    dummied.map(({ op }) => op)
  )
  return Promise.all(
    dummied.map(({ op, wallet }, i) =>
      world.sign(version, withLimits(op, measures[i], version), wallet.prove)
    )
  )
}

describe.each(versions)("estimated limits on %s", (version) => {
  it("limits hold for ops estimated together and sent one by one", async () => {
    const owner = await create(version, "owner")
    const spender = await create(version, "spender")
    const of = (wallet: TestWallet, nonce: bigint, name: string, ...args: ReadonlyArray<unknown>): Op =>
      opOf(wallet, nonce, execute(world.token, 0n, tokenAbi.encodeFunctionData(name, args)))
    const steps: ReadonlyArray<readonly [TestWallet, Op]> = [
      [owner, of(owner, 1n, "approve", spender.address, 500n)],
      [spender, of(spender, 1n, "transferFrom", owner.address, holder, 500n)],
      [owner, of(owner, 2n, "transfer", holder, 5n)],
      [owner, of(owner, 5n << 64n, "transfer", holder, 5n)],
      [owner, of(owner, (5n << 64n) | 1n, "transfer", holder, 5n)]
    ]
    await world.clearDeposit(version, owner.address)
    await world.clearDeposit(version, spender.address)
    for (const [i, op] of (await estimated(version, steps)).entries())
      expect((await world.submit(version, [op])).success, `op ${i}`).toBe(true)
  })

  it("limits hold for ops sent as estimated, in one bundle", async () => {
    const wallets = [
      await create(version, "first"),
      await create(version, "second"),
      await create(version, "third")
    ]
    const transfer = (to: string) => tokenAbi.encodeFunctionData("transfer", [to, 7n])
    const steps = wallets.map((wallet, i) => {
      const callData = execute(world.token, 0n, transfer(wallets[i - 1]?.address ?? holder))
      return [wallet, opOf(wallet, 1n, callData)] as const
    })
    const outcome = await world.submit(version, await estimated(version, steps))
    expect([outcome.success, outcome.events]).toEqual([true, 3])
  })

  it("limits are minimal where EIP-150 withholds gas from deep calls, in re-simulation and on the EntryPoint", async () => {
    const wallet = await create(version, "deep")
    const bump = (i: number) => ({
      target: world.reverter,
      value: 0n,
      data: reverterAbi.encodeFunctionData("bump", [
        `0x${version.slice(3)}${i.toString(16).padStart(63, "0")}`
      ])
    })
    let callData = executeBatch(Array.from({ length: 60 }, (_, i) => bump(i)))
    for (let depth = 0; depth < 5; depth++) callData = execute(wallet.address, 0n, callData)
    const op = world.dummied({ ...opOf(wallet, 1n, callData), ...generous })
    const limited = withLimits(op, (await world.measure(version, [op]))[0], version)
    const again = async (tried: Op): Promise<string | undefined> => {
      const { callGasLimit: callGas, verificationGasLimit: verificationGas } = tried
      const [measure] = await world.measure(version, [tried], { callGas, verificationGas }, true)
      return measure?.stage
    }
    const works = async (tried: Op) =>
      (await world.simulate(version, [await world.sign(version, tried, wallet.prove)])).success
    expect([await again(limited), await works(limited)]).toEqual(["ok", true])
    const lower = { ...limited, callGasLimit: (limited.callGasLimit * 62n) / 64n }
    expect([await again(lower), await works(lower)]).toEqual(["call", false])
  })

  it("limits need exactly the EntryPoint's prefund, to the wei", async () => {
    const wallet = await create(version, "exact")
    await world.clearDeposit(version, wallet.address)
    const op: Op = {
      ...opOf(wallet, 1n, "0x"),
      ...generous,
      maxFeePerGas: 7_000_000_001n,
      maxPriorityFeePerGas: 1n
    }
    const signed = await world.sign(version, op, wallet.prove)
    const prefund = Gas.requiredPrefund(version, signed)
    await world.setBalance(wallet.address, prefund - 1n)
    const short = await world.simulate(version, [signed])
    expect(
      npmInterface(version, "EntryPoint")
        .parseError(short.reverted ?? "0x")
        ?.args.toArray()
    ).toEqual([0n, "AA21 didn't pay prefund"])
    const [lacking] = await world.measure(version, [signed])
    expect([lacking?.stage, lacking?.shortfall]).toEqual(["ok", 1n])
    await world.setBalance(wallet.address, prefund)
    expect((await world.simulate(version, [signed])).success).toBe(true)
  })

  it("limits of the transaction are close to its use when calls use their declared gas", async () => {
    const wallet = await create(version, "burning")
    const burn = execute(world.reverter, 0n, reverterAbi.encodeFunctionData("failOutOfGas"))
    const limits = { verificationGasLimit: 150_000n, callGasLimit: 2_000_000n }
    const ops = await Promise.all(
      [0n, 1n, 2n].map((i) =>
        world.sign(version, { ...opOf(wallet, (9n << 64n) | i, burn), ...limits }, wallet.prove)
      )
    )
    const bounds = { bound: 30_000_000n, overshoot: Percent.zero }
    const gasLimit = Result.getOrThrow(Gas.transactionGasLimit(version, ops, bounds))
    const bundle = await world.simulate(version, ops, gasLimit)
    expect([bundle.reverted, bundle.events]).toEqual([null, 3])
    expect(Number(gasLimit)).toBeLessThan(Number(bundle.usedGas) * 1.2)
  })
})
