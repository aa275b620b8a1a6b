import * as Result from "effect/Result"
import { Interface } from "ethers"
import { describe, expect, it } from "vitest"
import { versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import type * as Hex from "../../../src/domain/primitives/Hex.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { fundPaymaster } from "../../../src/hosts/cli/deploy/Suite.js"
import { reverterAbi, tokenAbi } from "./Abis.js"
import { sealed, sponsor } from "./Sponsored.js"
import { created, creationOf, ecdsaWallet, execute, opOf, type TestWallet } from "./Wallets.js"
import { holder, type Op, useWorld } from "./World.js"

const lensAbi = new Interface(artifact("GasLens").abi)

const world = useWorld(undefined, (world) => fundPaymaster(world.payer, world.suite.paymaster, 10n ** 20n))

const decoded = (told: Hex.Hex | undefined, request: GasLens.Asked | undefined): GasLens.Report =>
  Result.getOrThrow(GasLens.decode(told ?? "0x", request ?? { probes: [], wallets: [] }))

describe.each(versions)("looks in one call on %s", (version) => {
  const transfer = (amount = 1n) =>
    execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, amount]))
  const failing = (name: string, ...args: ReadonlyArray<unknown>) =>
    execute(world.reverter, 0n, reverterAbi.encodeFunctionData(name, args))
  const limits = { callGasLimit: 100_000n, verificationGasLimit: 400_000n }
  const make = async (salt: string) => created(world, version, await ecdsaWallet(world, `${salt} ${version}`))
  const dummied = (wallet: TestWallet, nonce: bigint, callData: string) =>
    world.dummied({ ...opOf(wallet, nonce, callData), ...limits })
  const requestOf = async (op: Op): Promise<Omit<GasLens.Request, "entryPoint">> => ({
    probes: [await world.probe(version, op)],
    wallets: [op.sender]
  })

  it("measure each op as if it were measured separately, whatever precedes it", async () => {
    const [wallet, peer] = [await make("together"), await make("beside")]
    const fresh = await ecdsaWallet(world, `fresh ${version}`)
    await world.setBalance(fresh.address, 10n ** 18n)
    const poor = await ecdsaWallet(world, `poor ${version}`)
    const payer = sponsor(world)
    const paid = payer.data(version, { verificationGasLimit: 400_000n, postOpGasLimit: 200_000n })
    const draft = { ...opOf(peer, 1n, transfer()), ...limits, paymasterAndData: paid }
    const creation = (of: TestWallet) => world.sign(version, creationOf(of), world.deployerProof)
    const ops = [
      dummied(wallet, 1n, transfer()),
      // The same wallet, nonce and tokens again: each op passes when measured separately.
      dummied(wallet, 1n, transfer(1_000n)),
      dummied(wallet, 1n, transfer()),
      dummied(wallet, 9n << 64n, execute(holder, 5n, "0x")),
      await creation(fresh),
      await creation(fresh),
      await creation(poor),
      dummied(peer, 1n, failing("failWithReason", "no")),
      await sealed(world, version, draft, peer.prove, payer),
      // Not the wallet's next nonce.
      dummied(peer, 7n, transfer())
    ]
    const requests = await Promise.all(ops.map(requestOf))
    const alone = await Promise.all(requests.map((request) => world.look(version, request)))
    const together = await world.lookEach(version, requests)
    expect(together?.map((told, at) => decoded(told, requests[at]))).toEqual(alone)
    const reversed = await world.lookEach(version, [...requests].reverse())
    expect(reversed?.map((told, at) => decoded(told, requests.at(-1 - at)))).toEqual([...alone].reverse())
    expect(new Set(alone.map(({ measures: [measure] }) => measure?.stage))).toEqual(new Set(["ok", "call"]))
    expect(alone[6]?.measures[0]?.shortfall).toBeGreaterThan(0n)
  })

  it("32 typical calls fit into 50 million gas", async () => {
    const request = await requestOf(dummied(await make("many"), 1n, transfer()))
    const requests = Array.from({ length: 32 }, () => request)
    const told = await world.lookEach(version, requests, 50_000_000n)
    const alone = await world.look(version, request)
    expect(told?.map((each, at) => decoded(each, requests[at]))).toEqual(requests.map(() => alone))
  })

  it("a lens call after another reports too little gas", async () => {
    const wallet = await make("starved")
    const first = await requestOf(dummied(wallet, 1n, failing("failOutOfGas")))
    const second = await requestOf(dummied(wallet, 1n, transfer()))
    const requests = [first, second]
    const told = await world.lookEach(version, requests, 20_000_000n)
    const stages = told?.map((each, at) => decoded(each, requests[at]).measures[0]?.stage)
    expect(stages).toEqual(["call", "starved"])
    expect((await world.look(version, second, { gas: 20_000_000n })).measures[0]?.stage).toBe("ok")
  })

  it("a nested lens call by a wallet's op fails", async () => {
    const wallet = await make("nested")
    const inner = await requestOf(dummied(wallet, 1n, transfer()))
    const entryPoint = world.entryPoint(version)
    const data = Result.getOrThrow(GasLens.encodeCall({ entryPoint, ...inner }))
    const nested = execute(entryPoint, 0n, lensAbi.encodeFunctionData("measureEach", [[data]]))
    const { measures } = await world.look(version, await requestOf(dummied(wallet, 1n, nested)))
    expect(measures).toMatchObject([{ stage: "call", data: "0x" }])
  })
})
