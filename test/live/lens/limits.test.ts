import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Address } from "../../../src/domain/evm/Address.js"
import { type Version, versions } from "../../../src/domain/op/EntryPoint.js"
import * as Gas from "../../../src/domain/op/Gas.js"
import type { Measure } from "../../../src/domain/op/GasLens.js"
import {
  creationOf,
  ecdsaWallet,
  execute,
  executeBatch,
  opOf,
  type TestWallet
} from "../../support/lens/Wallets.js"
import { dummyEcdsa, npmInterface, type Op, reverterAbi, tokenAbi, World } from "../../support/lens/World.js"

let world: World
let token: Address
let reverter: Address

beforeAll(async () => {
  world = await World.start()
  token = await world.create("TestToken")
  reverter = await world.create("Reverter")
})
afterAll(() => world.stop())

const holder = "0x00000000000000000000000000000000000a11ce"
const generous = { callGasLimit: 300_000n, verificationGasLimit: 500_000n }

const create = async (version: Version, salt: string): Promise<TestWallet> => {
  const wallet = await ecdsaWallet(world, `${salt} ${version}`)
  await world.setBalance(wallet.address, 10n ** 18n)
  await world.send(token, tokenAbi.encodeFunctionData("mint", [wallet.address, 1_000n]))
  const op = { ...creationOf(wallet), verificationGasLimit: 600_000n }
  await world.submit(version, [await world.sign(version, op, world.deployerProof)])
  return wallet
}

const measure = async (version: Version, ops: ReadonlyArray<Op>): Promise<ReadonlyArray<Measure>> => {
  const dummied = ops.map((op) => ({ ...op, ...generous, signature: world.blob(dummyEcdsa()) }))
  const probes = await Promise.all(dummied.map((op) => world.probe(version, op)))
  return (await world.look(version, { probes, wallets: [] })).measures
}

const withLimits = (op: Op, measured: Measure | undefined): Op => {
  if (measured?.stage !== "ok") throw new Error(`${measured?.stage} ${measured?.data}`)
  const signature = world.blob(dummyEcdsa())
  return {
    ...op,
    verificationGasLimit: Gas.verificationGasLimit(measured, { ...op, signature }),
    callGasLimit: Gas.callGasLimit(measured, op.callData)
  }
}

describe.each(versions)("estimated limits on %s", (version) => {
  it("hold for ops that were estimated together and are sent one by one", async () => {
    const owner = await create(version, "owner")
    const spender = await create(version, "spender")
    const of = (wallet: TestWallet, nonce: bigint, name: string, ...args: ReadonlyArray<unknown>): Op =>
      opOf(wallet, nonce, execute(token, 0n, tokenAbi.encodeFunctionData(name, args)))
    const steps: ReadonlyArray<readonly [TestWallet, Op]> = [
      [owner, of(owner, 1n, "approve", spender.address, 500n)],
      [spender, of(spender, 1n, "transferFrom", owner.address, holder, 500n)],
      [owner, of(owner, 2n, "transfer", holder, 5n)],
      [owner, of(owner, 5n << 64n, "transfer", holder, 5n)],
      [owner, of(owner, (5n << 64n) | 1n, "transfer", holder, 5n)]
    ]
    await world.clearDeposit(version, owner.address)
    await world.clearDeposit(version, spender.address)
    const measures = await measure(
      version,
      steps.map(([, op]) => op)
    )
    for (const [i, [wallet, op]] of steps.entries()) {
      const signed = await world.sign(version, withLimits(op, measures[i]), wallet.prove)
      expect((await world.submit(version, [signed])).success, `op ${i}`).toBe(true)
    }
  })

  it("hold for ops that are sent as they were estimated, in one bundle", async () => {
    const wallets = [
      await create(version, "first"),
      await create(version, "second"),
      await create(version, "third")
    ]
    const ops = wallets.map((wallet, i) =>
      opOf(
        wallet,
        1n,
        execute(token, 0n, tokenAbi.encodeFunctionData("transfer", [wallets[i - 1]?.address ?? holder, 7n]))
      )
    )
    const measures = await measure(version, ops)
    const signed = await Promise.all(
      wallets.map((wallet, i) =>
        world.sign(version, withLimits(ops[i] ?? opOf(wallet, 0n, "0x"), measures[i]), wallet.prove)
      )
    )
    const outcome = await world.submit(version, signed)
    expect([outcome.success, outcome.events]).toEqual([true, 3])
  })

  it("prove too low in the re-simulation where EIP-150 withholds gas from deep calls, as on the EntryPoint", async () => {
    const wallet = await create(version, "deep")
    const bump = (i: number) => ({
      target: reverter,
      value: 0n,
      data: reverterAbi.encodeFunctionData("bump", [
        `0x${version.slice(3)}${i.toString(16).padStart(63, "0")}`
      ])
    })
    let callData = executeBatch(Array.from({ length: 60 }, (_, i) => bump(i)))
    for (let depth = 0; depth < 5; depth++) callData = execute(wallet.address, 0n, callData)
    const op = opOf(wallet, 1n, callData)
    const [measured] = await measure(version, [op])
    const limited = withLimits(op, measured)
    const again = async (tried: Op): Promise<string | undefined> => {
      const { callGasLimit: callGas, verificationGasLimit: verificationGas } = tried
      const signature = world.blob(dummyEcdsa())
      const probe = await world.probe(version, { ...tried, signature }, { callGas, verificationGas })
      return (await world.look(version, { probes: [probe], wallets: [] })).measures[0]?.stage
    }
    const works = async (tried: Op) =>
      (await world.simulate(version, [await world.sign(version, tried, wallet.prove)])).success
    expect([await again(limited), await works(limited)]).toEqual(["call", false])
    const raised = { ...limited, callGasLimit: (limited.callGasLimit * 5n) / 4n }
    expect([await again(raised), await works(raised)]).toEqual(["ok", true])
  })

  it("need a prefund that is the EntryPoint's to the wei", async () => {
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
    const [lacking] = (
      await world.look(version, { probes: [await world.probe(version, signed)], wallets: [] })
    ).measures
    expect([lacking?.stage, lacking?.shortfall]).toEqual(["ok", 1n])
    await world.setBalance(wallet.address, prefund)
    expect((await world.simulate(version, [signed])).success).toBe(true)
  })
})
