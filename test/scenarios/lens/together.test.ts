import * as Either from "effect/Either"
import { Interface } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Steps from "../../../src/domain/primitives/Steps.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { fundPaymaster } from "../../../src/hosts/cli/deploy/Suite.js"
import { reverterAbi, tokenAbi } from "../../support/lens/Abis.js"
import { sealed, sponsor } from "../../support/lens/Sponsored.js"
import { created, creationOf, ecdsaWallet, execute, opOf } from "../../support/lens/Wallets.js"
import { holder, type Op, World } from "../../support/lens/World.js"

const lensAbi = new Interface(artifact("GasLens").abi)

let world: World

beforeAll(async () => {
  world = await World.start()
  await fundPaymaster(world.payer, world.suite.paymaster, 10n ** 20n)
})
afterAll(() => world.stop())

const decoded = (told: Hex.Hex | undefined): GasLens.Report =>
  Either.getOrThrow(Steps.finish(GasLens.decodeSteps(told ?? "0x")))

describe.each(versions)("looks in one call on %s", (version) => {
  const requestOf = async (op: Op): Promise<Omit<GasLens.Request, "entryPoint">> => ({
    probes: [await world.probe(version, op)],
    wallets: [op.sender]
  })
  const limits = { callGasLimit: 100_000n, verificationGasLimit: 400_000n }

  it("measure what each measures alone, whatever stands before it", async () => {
    const wallet = await created(world, version, await ecdsaWallet(world, `together ${version}`))
    const peer = await created(world, version, await ecdsaWallet(world, `beside ${version}`))
    const fresh = await ecdsaWallet(world, `fresh ${version}`)
    await world.setBalance(fresh.address, 10n ** 18n)
    const poor = await ecdsaWallet(world, `poor ${version}`)
    const transfer = execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
    const all = execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1_000n]))
    const failing = execute(world.reverter, 0n, reverterAbi.encodeFunctionData("failWithReason", ["no"]))
    const payer = sponsor(world)
    const draft = {
      ...opOf(peer, 1n, transfer),
      ...limits,
      paymasterAndData: payer.data(version, { verificationGasLimit: 400_000n, postOpGasLimit: 200_000n })
    }
    const dummied = (op: Op) => world.dummied({ ...op, ...limits })
    const ops = [
      dummied(opOf(wallet, 1n, transfer)),
      // The same wallet, nonce and tokens again: alone each of them goes through.
      dummied(opOf(wallet, 1n, all)),
      dummied(opOf(wallet, 1n, transfer)),
      dummied(opOf(wallet, 9n << 64n, execute(holder, 5n, "0x"))),
      await world.sign(version, creationOf(fresh), world.deployerProof),
      await world.sign(version, creationOf(fresh), world.deployerProof),
      await world.sign(version, creationOf(poor), world.deployerProof),
      dummied(opOf(peer, 1n, failing)),
      await sealed(world, version, draft, peer.prove, payer),
      // A nonce that is not the wallet's next.
      dummied(opOf(peer, 7n, transfer))
    ]
    const requests = await Promise.all(ops.map(requestOf))
    const alone = await Promise.all(requests.map((request) => world.look(version, request)))
    const together = await world.lookEach(version, requests)
    expect(together?.map((told) => decoded(told))).toEqual(alone)
    const reversed = await world.lookEach(version, [...requests].reverse())
    expect(reversed?.map((told) => decoded(told))).toEqual([...alone].reverse())
    expect(new Set(alone.map(({ measures: [measure] }) => measure?.stage))).toEqual(new Set(["ok", "call"]))
    expect(alone[6]?.measures[0]?.shortfall).toBeGreaterThan(0n)
  })

  it("32 usual ones have enough in 50 million gas", async () => {
    const wallet = await created(world, version, await ecdsaWallet(world, `many ${version}`))
    const transfer = execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
    const request = await requestOf(world.dummied({ ...opOf(wallet, 1n, transfer), ...limits }))
    const told = await world.lookEach(
      version,
      Array.from({ length: 32 }, () => request),
      50_000_000n
    )
    const alone = await world.look(version, request)
    expect(told?.map((each) => decoded(each))).toEqual(Array.from({ length: 32 }, () => alone))
  })

  it("say so where there is too little gas for one behind another", async () => {
    const wallet = await created(world, version, await ecdsaWallet(world, `starved ${version}`))
    const burning = execute(world.reverter, 0n, reverterAbi.encodeFunctionData("failOutOfGas"))
    const transfer = execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
    const [first, second] = await Promise.all(
      [burning, transfer].map((call) => requestOf(world.dummied({ ...opOf(wallet, 1n, call), ...limits })))
    )
    if (first === undefined || second === undefined) throw new Error("two requests")
    const told = await world.lookEach(version, [first, second], 20_000_000n)
    const stages = told?.map((each) => decoded(each).measures[0]?.stage)
    expect(stages).toEqual(["call", "starved"])
    expect((await world.look(version, second, { gas: 20_000_000n })).measures[0]?.stage).toBe("ok")
  })

  it("are the EntryPoint's own for a wallet that calls the lens from its op", async () => {
    const wallet = await created(world, version, await ecdsaWallet(world, `nested ${version}`))
    const transfer = execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
    const inner = await requestOf(world.dummied({ ...opOf(wallet, 1n, transfer), ...limits }))
    const data = Either.getOrThrow(GasLens.encodeCall({ entryPoint: world.entryPoint(version), ...inner }))
    const nested = execute(world.entryPoint(version), 0n, lensAbi.encodeFunctionData("measureEach", [[data]]))
    const request = await requestOf(world.dummied({ ...opOf(wallet, 1n, nested), ...limits }))
    expect((await world.look(version, request)).measures[0]).toMatchObject({ stage: "call" })
    const { data: said } = (await world.look(version, request)).measures[0] ?? { data: Hex.empty }
    expect(said).toBe("0x")
  })
})
