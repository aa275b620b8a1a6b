import { Interface } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import type * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { npmInterface, tokenAbi } from "./Abis.js"
import { sealed, unsigned } from "./Sponsored.js"
import { created, ecdsaWallet, execute, opOf, type TestWallet } from "./Wallets.js"
import { holder, type Op, useWorld } from "./World.js"

const hostileAbi = new Interface(artifact("HostilePaymaster").abi)
const stake = new Interface(["function depositTo(address) payable"])

/** In the contract's order. */
const vices = [
  "none",
  "revert",
  "burnGas",
  "returnMuch",
  "returnLittle",
  "refuseSignature",
  "expired",
  "hugeContext",
  "revertInPostOp",
  "burnGasInPostOp",
  "onlyOnce"
] as const
type Vice = (typeof vices)[number]
const paymasters = new Map<Vice, Address.Address>()

const world = useWorld(undefined, async (world) => {
  for (const [index, vice] of vices.entries()) {
    const paymaster = await world.deploy(initCode("HostilePaymaster", [index]))
    paymasters.set(vice, paymaster)
    const depositTo = stake.encodeFunctionData("depositTo", [paymaster])
    for (const version of versions) await world.send(world.entryPoint(version), depositTo, 10n ** 18n)
  }
})

describe.each(versions)("a paymaster under the lens on %s", (version: Version) => {
  let wallet: TestWallet
  let neighbours: ReadonlyArray<Op>
  beforeAll(async () => {
    wallet = await created(world, version, await ecdsaWallet(world, `paymasters ${version}`))
    const before = await created(world, version, await ecdsaWallet(world, `before ${version}`))
    const behind = await created(world, version, await ecdsaWallet(world, `behind ${version}`))
    neighbours = [await own(before), await own(behind)]
  })

  const paymasterOf = (vice: Vice): Address.Address => {
    const paymaster = paymasters.get(vice)
    if (paymaster === undefined) throw new Error(vice)
    return paymaster
  }
  const transfer = () => execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
  const limits = { verificationGasLimit: 200_000n, postOpGasLimit: 100_000n }
  const opBy = (paymaster: Address.Address, nonce = 1n, data = "0x"): Promise<Op> => {
    const payer = unsigned(paymaster, data)
    const op: Op = {
      ...opOf(wallet, nonce, transfer()),
      callGasLimit: 60_000n,
      verificationGasLimit: 200_000n,
      paymasterAndData: payer.data(version, limits)
    }
    return sealed(world, version, op, wallet.prove, payer)
  }
  const own = (payer: TestWallet): Promise<Op> =>
    world.sign(
      version,
      { ...opOf(payer, 1n, transfer()), callGasLimit: 60_000n, verificationGasLimit: 200_000n },
      payer.prove
    )
  const given = {
    verificationGas: 200_000n,
    callGas: 60_000n,
    paymasterGas: limits.verificationGasLimit,
    postOpGas: limits.postOpGasLimit
  }
  const reasonOf = (data: Hex.Hex): string => {
    if (data === Hex.empty) return data
    const error = npmInterface(version, "EntryPoint").parseError(data) ?? hostileAbi.parseError(data)
    return error === null ? data : error.name === "FailedOp" ? String(error.args[1]) : error.name
  }
  /** Result at the real EntryPoint: its reason, success, or a failure within the op. */
  const onChain = async (op: Op): Promise<string> => {
    const { reverted, success } = await world.simulate(version, [op])
    if (reverted === null) return success ? "ok" : "failed"
    if (reverted === "0x") return reverted
    const error = npmInterface(version, "EntryPoint").parseError(reverted)
    return error === null ? reverted : String(error.args[1])
  }

  const postOpFails = version === "v0.6" ? "AA50 " : "failed"
  const verdicts: ReadonlyArray<readonly [Vice, GasLens.Stage, string, string]> = [
    ["none", "ok", "", "ok"],
    ["revert", "paymaster", "NotToday", "AA33 "],
    ["burnGas", "paymaster", "0x", "AA33 "],
    ["returnLittle", "paymaster", "AA33 reverted", version === "v0.8" ? "AA33 " : "0x"],
    ["revertInPostOp", "postOp", "NotToday", postOpFails],
    ["burnGasInPostOp", "postOp", "0x", version === "v0.6" ? "0x" : "failed"],
    ["onlyOnce", "ok", "", "ok"]
  ]

  it.each(verdicts)(
    "a paymaster with the vice %s stops the op at the stage %s",
    async (vice, stage, reason, real) => {
      const op = await opBy(paymasterOf(vice))
      const [measure] = await world.measure(version, [op], given)
      expect(measure?.stage).toBe(stage)
      if (stage !== "ok") expect(reasonOf(measure?.data ?? Hex.empty)).toBe(reason)
      expect(await onChain(op)).toContain(real)
    }
  )

  it("a paymaster that refuses the signature or the time is measured, and its answer reported", async () => {
    const report = async (vice: Vice) => {
      const [measure] = await world.measure(version, [await opBy(paymasterOf(vice))], given)
      expect(measure?.stage).toBe("ok")
      return GasLens.parseValidationData(measure?.paymasterData ?? 0n)
    }
    expect(await report("none")).toMatchObject({ authorizer: `0x${"0".repeat(40)}`, validUntil: 0n })
    expect(BigInt((await report("refuseSignature")).authorizer)).toBe(1n)
    expect(await onChain(await opBy(paymasterOf("refuseSignature")))).toContain("AA34 ")
    expect((await report("expired")).validUntil).toBe(1n)
    expect(await onChain(await opBy(paymasterOf("expired")))).toContain("AA32 ")
  })

  it.each(["returnMuch", "hugeContext"] as const)("an oversized answer (%s) is refused", async (vice) => {
    const [measure] = await world.measure(version, [await opBy(paymasterOf(vice))], given)
    expect([measure?.stage, reasonOf(measure?.data ?? Hex.empty)]).toEqual(["paymaster", "AA33 reverted"])
  })

  it.each(vices)("a paymaster with the vice %s does not change the other ops", async (vice) => {
    const [before, behind] = neighbours
    if (before === undefined || behind === undefined) throw new Error("two neighbours")
    const undisturbed = await world.measure(version, neighbours, given)
    const [first, , last] = await world.measure(
      version,
      [before, await opBy(paymasterOf(vice)), behind],
      given
    )
    expect([first, last]).toEqual(undisturbed)
  })

  it("a paymaster that pays once for a wallet pays for the first of its ops", async () => {
    const ops = [await opBy(paymasterOf("onlyOnce"), 1n), await opBy(paymasterOf("onlyOnce"), 2n)]
    const measures = await world.measure(version, ops, given)
    expect(measures.map(({ stage }) => stage)).toEqual(["ok", "paymaster"])
    expect(reasonOf(measures[1]?.data ?? Hex.empty)).toBe("NotToday")
  })

  it("a missing paymaster is AA30", async () => {
    const nobody = world.submitter.address as Address.Address
    await world.send(world.entryPoint(version), stake.encodeFunctionData("depositTo", [nobody]), 10n ** 18n)
    const [measure] = await world.measure(version, [await opBy(nobody)], given)
    expect(measure?.stage).toBe("paymaster")
    expect(reasonOf(measure?.data ?? Hex.empty)).toBe("AA30 paymaster not deployed")
  })

  it("a paymaster pays for ops in order; a lack of deposit is reported, and the wallet pays no fee", async () => {
    const poor = await world.deploy(initCode("HostilePaymaster", [0]))
    const op = await opBy(poor)
    const prefund = (await world.probe(version, op)).requiredPrefund
    const entryPoint = world.entryPoint(version)
    await world.send(entryPoint, stake.encodeFunctionData("depositTo", [poor]), prefund + 7n)
    const ops = [op, await opBy(poor, 2n)]
    const probes = await Promise.all(ops.map((each) => world.probe(version, each, given)))
    const { measures, wallets } = await world.look(version, { probes, wallets: [poor, wallet.address] })
    expect(wallets[0]?.deposit).toBe(prefund + 7n)
    expect(measures.map(({ shortfall }) => shortfall)).toEqual([0n, prefund - 7n])
    expect(await onChain(op)).toBe("ok")
    const both = await world.simulate(version, ops)
    expect(reasonOf(Hex.unsafe(both.reverted ?? "0x"))).toBe("AA31 paymaster deposit too low")
  })

  it("a paymaster has its own limit, or on v0.6 the rest of the wallet's limit", async () => {
    const op = await opBy(paymasterOf("none"))
    const [measure] = await world.measure(version, [op], given)
    const { bookkeepingGas = 0n, paymasterGas = 0n, validationGas = 0n } = measure ?? {}
    const least = version === "v0.6" ? validationGas + bookkeepingGas + paymasterGas : paymasterGas
    const tight = (gas: bigint) =>
      version === "v0.6" ? { ...given, verificationGas: gas } : { ...given, paymasterGas: gas }
    const stage = async (gas: bigint) => (await world.measure(version, [op], tight(gas)))[0]?.stage
    expect(await stage(least + 300n)).toBe("ok")
    expect(await stage(least - 300n)).toBe("paymaster")
  })
})
