import { Interface } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import type * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { npmInterface, tokenAbi, toProbe } from "./Abis.js"
import { compile } from "./Solidity.js"
import { created, ecdsaWallet, execute, opOf, type TestWallet } from "./Wallets.js"
import { dummyEcdsa, type Op, useWorld } from "./World.js"

const compiled = compile(new URL("Hostile.sol", import.meta.url))
const hostileAbi = new Interface(compiled("Hostile").abi)
const lensAbi = new Interface(artifact("GasLens").abi)
const zero = Address.zero

interface Act {
  readonly kind: number
  readonly size?: number
  readonly target?: string
  readonly data?: string
}
const nothing: Act = { kind: 0 }
const toTuple = (act: Act) => [act.kind, act.size ?? 0, act.target ?? zero, act.data ?? "0x"]

let puppet: Address.Address
const world = useWorld(undefined, async (world) => {
  puppet = await world.deploy(compiled("Puppet").code)
})

const hostile = async (whenValidating: Act): Promise<Address.Address> => {
  const address = await world.deploy(compiled("Hostile").code)
  await world.send(address, hostileAbi.encodeFunctionData("prepare", [toTuple(whenValidating)]))
  await world.setBalance(address, 10n ** 18n)
  return address
}

const hostileOp = (sender: Address.Address, whenCalled: Act): Op => ({
  ...opOf(
    { address: sender, initCode: Hex.empty, prove: dummyEcdsa, dummy: dummyEcdsa },
    0n,
    hostileAbi.encodeFunctionData("perform", [toTuple(whenCalled)])
  ),
  callGasLimit: 100_000n,
  verificationGasLimit: 200_000n
})

const given = { verificationGas: 1_000_000n, callGas: 2_000_000n }

describe.each(EntryPoint.versions)("next to a hostile wallet on %s", (version) => {
  let victim: TestWallet
  let honest: GasLens.Probe
  let undisturbed: GasLens.Measure | undefined

  beforeAll(async () => {
    victim = await created(world, version, await ecdsaWallet(world, `victim ${version}`))
    const transfer = tokenAbi.encodeFunctionData("transfer", [world.submitter.address, 1n])
    const op = {
      ...opOf(victim, 1n, execute(world.token, 0n, transfer)),
      callGasLimit: 50_000n,
      verificationGasLimit: 90_000n
    }
    honest = await world.probe(version, world.dummied(op), given)
    undisturbed = (await world.look(version, { probes: [honest], wallets: [] })).measures[0]
    expect(undisturbed?.stage).toBe("ok")
  })

  /** Measures [hostile, honest] and checks that the honest wallet has the same measure as without the hostile one. */
  const beside = async (whenValidating: Act, whenCalled: Act): Promise<GasLens.Measure> => {
    const sender = await hostile(whenValidating)
    const probes = [await world.probe(version, hostileOp(sender, whenCalled), given), honest]
    const [first, second] = (await world.look(version, { probes, wallets: [] })).measures
    expect(second).toEqual(undisturbed)
    if (first === undefined) throw new Error("nothing measured")
    return first
  }

  const called = (measure: GasLens.Measure) => hostileAbi.decodeFunctionResult("perform", measure.data)

  it("a harmless wallet is measured like any other", async () => {
    expect(await beside(nothing, nothing)).toMatchObject({
      stage: "ok",
      coldValidation: true,
      coldCall: true,
      nonceAccepted: true
    })
  })

  it("a wallet that burns gas burns only its own gas", async () => {
    const validating = await beside({ kind: 1 }, nothing)
    expect(validating.stage).toBe("validation")
    expect(validating.validationGas).toBeLessThan(given.verificationGas + 10_000n)
    const calling = await beside(nothing, { kind: 1 })
    expect(calling.stage).toBe("call")
    expect(calling.callGas).toBeLessThan(given.callGas + 10_000n)
  })

  it("revert data and return data are kept up to 16 KiB", async () => {
    const size = 100_000
    const reverted = await beside(nothing, { kind: 2, size })
    expect([reverted.stage, Hex.size(reverted.data)]).toEqual(["call", 16_384])
    const returned = await beside(nothing, { kind: 3, size })
    expect([returned.stage, Hex.size(returned.data)]).toEqual(["ok", 16_384])
    const validating = await beside({ kind: 2, size }, nothing)
    expect([validating.stage, Hex.size(validating.data)]).toEqual(["validation", 16_384])
  })

  it("a validation that returns less than a word does not pass", async () => {
    const short = await beside({ kind: 3, size: 31 }, nothing)
    expect(short.stage).toBe("validation")
  })

  it("a wallet that does not pay is named", async () => {
    const unpaid = await beside({ kind: 5 }, nothing)
    expect(unpaid.stage).toBe("prefund")
    expect(npmInterface(version, "EntryPoint").parseError(unpaid.data)?.args.toArray()).toEqual([
      0n,
      "AA21 didn't pay prefund"
    ])
  })

  it("absurd figures do not affect other ops", async () => {
    const sender = await hostile(nothing)
    const most = (1n << 256n) - 1n
    const greedy = {
      ...(await world.probe(version, hostileOp(sender, nothing), given)),
      requiredPrefund: most
    }
    const probes = [
      greedy,
      greedy,
      { ...greedy, verificationGas: most },
      { ...greedy, callGas: most },
      honest
    ]
    const { measures } = await world.look(version, { probes, wallets: [] })
    expect(measures.map(({ stage }) => stage)).toEqual(["ok", "ok", "starved", "starved", "ok"])
    expect(measures[0]?.shortfall).toBe(most - 10n ** 18n)
    expect(measures[4]).toEqual(undisturbed)
  })

  it("the lens's own functions do not exist for wallets", async () => {
    const entryPoint = world.entryPoint(version)
    const creator = EntryPoint.senderCreator(entryPoint)
    const measure = lensAbi.encodeFunctionData("measure", [[toProbe(honest)], [], [], zero, creator, false])
    const run = lensAbi.encodeFunctionData("run", [[toProbe(honest)], creator, 10])
    const validate = lensAbi.encodeFunctionData("validate", [0, toProbe(honest), creator, 10])
    const execute = lensAbi.encodeFunctionData("execute", [
      toProbe(honest),
      { ...undisturbed, stage: 0 },
      "0x12",
      10
    ])
    const create = lensAbi.encodeFunctionData("createSender", [
      `${victim.address}${honest.callData.slice(2)}`
    ])
    const attempt = lensAbi.encodeFunctionData("attempt", [
      { target: victim.address, data: "0x", used: 0, digest: `0x${"00".repeat(32)}` },
      100_000,
      10,
      true
    ])
    for (const data of [measure, run, validate, execute, attempt, create]) {
      const act = { kind: 4, target: entryPoint, data }
      expect([...called(await beside(act, act))]).toEqual([false, "0x"])
    }
  })

  // EntryPoint v0.6 has no such function.
  if (version !== "v0.6")
    it("a wallet that acts as the EntryPoint through delegateAndRevert leaves no trace", async () => {
      const entryPoint = world.entryPoint(version)
      const run = lensAbi.encodeFunctionData("run", [
        [toProbe(honest)],
        EntryPoint.senderCreator(entryPoint),
        10
      ])
      const puppetAbi = new Interface(compiled("Puppet").abi)
      const entryPointAbi = npmInterface(version, "EntryPoint")
      const go = puppetAbi.encodeFunctionData("go", [entryPoint, run])
      const data = entryPointAbi.encodeFunctionData("delegateAndRevert", [puppet, go])
      const act = { kind: 4, target: entryPoint, data }
      const { ok, returned } = called(await beside(act, act))
      expect(ok).toBe(false)
      // The EntryPoint ran the puppet's code, so the nested call came from the EntryPoint.
      const reverted = entryPointAbi.parseError(returned)
      expect([reverted?.name, reverted?.args.success]).toEqual(["DelegateAndRevert", true])
      const went = puppetAbi.decodeFunctionResult("go", reverted?.args.ret)
      // The call reached the lens, which answers by a revert.
      expect([went.ok, went.returned === "0x"]).toEqual([false, false])
    })

  it("a bundle inside a bundle is refused", async () => {
    const data = world.handleOps(version, [])
    const act = { kind: 4, target: world.entryPoint(version), data }
    expect([...called(await beside(act, act))]).toEqual([false, "0x3ee5aeb5"])
  })

  it("the EntryPoint's functions still work", async () => {
    const entryPoint = world.entryPoint(version)
    const abi = npmInterface(version, "EntryPoint")
    const call = (name: string, ...args: ReadonlyArray<unknown>): Act => ({
      kind: 4,
      target: entryPoint,
      data: abi.encodeFunctionData(name, args)
    })
    const nonce = await beside(nothing, call("getNonce", victim.address, 0))
    expect(BigInt(called(nonce).returned)).toBe(2n)
    const sender = await hostile(call("incrementNonce", 7))
    const op = hostileOp(sender, call("getNonce", sender, 7))
    const [incremented] = await world.measure(version, [op], given)
    if (incremented === undefined) throw new Error("nothing measured")
    expect(BigInt(called(incremented).returned)).toBe((7n << 64n) | 1n)
  })
})
