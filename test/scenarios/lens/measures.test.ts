import { keccak256 } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { factoryAbi, npmInterface, reverterAbi, tokenAbi, walletAbi } from "./Abis.js"
import { created, creationOf, ecdsaWallet, execute, opOf, type TestWallet } from "./Wallets.js"
import { type Given, holder, type Op, useWorld } from "./World.js"

const world = useWorld()
const limits = { callGasLimit: 100_000n, verificationGasLimit: 400_000n }
const ether = 10n ** 18n
const nowhere = Address.unsafe(`0x${"ab".repeat(20)}`)

interface Frame {
  readonly to?: string
  readonly gasUsed: string
  readonly calls?: ReadonlyArray<Frame>
}

/** Frame gas of a mined bundle with one op: the factory's, validateUserOp's and the call's. */
const traced = async (version: EntryPoint.Version, op: Op) => {
  const entryPoint = world.entryPoint(version)
  const data = world.handleOps(version, [op])
  const sent = await world.submitter.sendTransaction({ to: entryPoint, data, gasLimit: 5_000_000n })
  await sent.wait()
  const tracing = [sent.hash, { tracer: "callTracer" }]
  const root: Frame = await world.provider.send("debug_traceTransaction", tracing)
  const below = (frame: Frame | undefined, to: string): number =>
    Number(frame?.calls?.find((call) => call.to === to.toLowerCase())?.gasUsed ?? 0)
  const inner = root.calls?.find((call) => call.to === entryPoint.toLowerCase())
  return {
    creation: below(root, EntryPoint.senderCreator(entryPoint)),
    validation: below(root, op.sender),
    call: below(inner, op.sender)
  }
}

describe.each(EntryPoint.versions)("a measure on %s", (version) => {
  const entryPointAbi = npmInterface(version, "EntryPoint")
  let wallet: TestWallet
  let peer: TestWallet
  let sequence = 1n

  const look = (ops: ReadonlyArray<Op>, given?: Given) => world.measure(version, ops, given)
  const one = async (op: Op, given?: Given): Promise<GasLens.Measure> => {
    const [measure] = await look([op], given)
    if (measure === undefined) throw new Error("nothing measured")
    return measure
  }
  const opFrom = (from: TestWallet, nonce: bigint, target: string, data: string, value = 0n): Op =>
    world.dummied({ ...opOf(from, nonce, execute(target, value, data)), ...limits })
  const token = (name: string, ...args: ReadonlyArray<unknown>) => tokenAbi.encodeFunctionData(name, args)
  const reverter = (name: string, ...args: ReadonlyArray<unknown>) =>
    opFrom(wallet, sequence, world.reverter, reverterAbi.encodeFunctionData(name, args))
  const named = (data: string) => entryPointAbi.parseError(data)?.args.toArray()
  const stages = (measures: ReadonlyArray<GasLens.Measure>) => measures.map(({ stage }) => stage)
  const create = async (salt: string): Promise<TestWallet> =>
    created(world, version, await ecdsaWallet(world, `${salt} ${version}`))
  const fresh = async (salt: string, wei = ether): Promise<TestWallet> => {
    const made = await ecdsaWallet(world, `${salt} ${version}`)
    await world.setBalance(made.address, wei)
    return made
  }
  const deposit = (to: string, wei: bigint) =>
    world.send(world.entryPoint(version), entryPointAbi.encodeFunctionData("depositTo", [to]), wei)

  beforeAll(async () => {
    wallet = await create("measured")
    peer = await create("peer")
  })

  it("a measure equals the later execution, frame by frame", async () => {
    const creation = creationOf(await fresh("traced"))
    const signed = (target: string, value: bigint, data: string) =>
      world.sign(
        version,
        { ...opOf(wallet, sequence++, execute(target, value, data)), ...limits },
        wallet.prove
      )
    for (const op of [
      await world.sign(version, creation, world.deployerProof),
      await signed(world.token, 0n, token("transfer", holder, 1n)),
      await signed(holder, 5n, "0x")
    ]) {
      const measure = await one(op)
      expect(measure).toMatchObject({
        stage: "ok",
        nonceAccepted: true,
        coldValidation: true,
        coldCall: true,
        shortfall: 0n
      })
      expect(GasLens.parseValidationData(measure.validationData)).toEqual({
        authorizer: Address.zero,
        validUntil: 4_000_000_000n,
        validAfter: 0n
      })
      const frames = await traced(version, op)
      // A CALL costs 100 gas warm and 2,600 cold; the lens's detours over the EntryPoint's code cost a few hundred.
      const within = (gas: bigint, frame: number, least: number, most: number) => {
        expect(Number(gas) - frame).toBeGreaterThanOrEqual(least)
        expect(Number(gas) - frame).toBeLessThanOrEqual(most)
      }
      const isCreation = frames.creation > 0
      within(measure.creationGas, frames.creation, isCreation ? 2_600 : 0, isCreation ? 3_600 : 0)
      within(measure.validationGas, frames.validation, isCreation ? 100 : 2_600, isCreation ? 700 : 3_200)
      within(measure.callGas, frames.call, 0, 300)
    }
  })

  it("distinguishes a failed signature from a valid one, and includes the return data of the wallet's call", async () => {
    const data = reverterAbi.encodeFunctionData("succeed", ["hello"])
    const measure = await one(opFrom(wallet, sequence, world.reverter, data, 3n))
    expect(measure.stage).toBe("ok")
    expect(GasLens.parseValidationData(measure.validationData).authorizer).toBe(`0x${"0".repeat(39)}1`)
    const [inner] = walletAbi.decodeFunctionResult("execute", measure.data)
    expect(reverterAbi.decodeFunctionResult("succeed", inner).toArray()).toEqual([3n])
  })

  it("a measure includes the inner revert data of the wallet's call", async () => {
    const failed = async (name: string, ...args: ReadonlyArray<unknown>) => {
      const { data, stage } = await one(reverter(name, ...args), { callGas: 300_000n })
      expect(stage).toBe("call")
      return data === "0x" ? data : reverterAbi.parseError(data)?.args.toArray()
    }
    expect(await failed("failWithReason", "no luck today")).toEqual(["no luck today"])
    expect(await failed("failCustom", 5n, 3n)).toEqual([wallet.address, 5n, 3n])
    expect(await failed("failDivision", 0n)).toEqual([0x12n])
    expect(await failed("failWithoutReason")).toBe("0x")
    expect(await failed("failOutOfGas")).toBe("0x")
  })

  it("a measure names a failed creation, with the factory's own revert data", async () => {
    const unborn = await fresh("refused")
    const other = await ecdsaWallet(world, `another ${version}`)
    const of = (initCode: Hex.Hex) => world.dummied(creationOf({ ...unborn, initCode }))
    const refused = await one(of(Hex.unsafe(unborn.initCode.replace(/.{66}$/, "00".repeat(33)))))
    expect(refused.stage).toBe("creation")
    expect(factoryAbi.parseError(refused.data)?.name).toBe("InvalidAuthorization")
    const nobody = world.dummied({ ...opOf(other, 0n, "0x"), verificationGasLimit: 600_000n })
    for (const [op, reason] of [
      [of(other.initCode), "AA14 initCode must return sender"],
      [world.dummied(creationOf(wallet)), "AA10 sender already constructed"],
      [nobody, "AA20 account not deployed"]
    ] as const)
      expect(named((await one(op, op === nobody ? { requiredPrefund: 0n } : {})).data)).toEqual([0n, reason])
  })

  it("runs each op on the state that its predecessors left, and is not smaller for it", async () => {
    const first = opFrom(wallet, sequence, world.token, token("approve", peer.address, 7n))
    const second = opFrom(peer, 1n, world.token, token("transferFrom", wallet.address, holder, 7n))
    expect(await look([first, second])).toMatchObject([
      { stage: "ok", coldCall: true },
      { stage: "ok", coldValidation: true, coldCall: false }
    ])
    const [early, late] = await look([second, first])
    expect([early?.stage, late?.stage]).toEqual(["call", "ok"])
    expect(tokenAbi.parseError(early?.data ?? "0x")?.name).toBe("ERC20InsufficientAllowance")
    const transfer = token("transfer", holder, 1n)
    const theirs = opFrom(peer, 1n, world.token, transfer)
    const [, behind] = await look([opFrom(wallet, sequence, world.token, transfer), theirs])
    expect(behind).toEqual(await one(theirs))
  })

  it("does not run an op that fails validation, and keeps none of its state", async () => {
    const approving = opFrom(wallet, sequence, world.token, token("approve", peer.address, 7n))
    const broken = { ...approving, signature: Hex.unsafe("0x1234") }
    const spend = opFrom(peer, 1n, world.token, token("transferFrom", wallet.address, holder, 7n))
    const measures = await look([broken, spend, approving])
    expect(stages(measures)).toEqual(["validation", "call", "ok"])
    expect(measures[2]?.nonceAccepted).toBe(true)
  })

  it("flags a nonce that the EntryPoint would refuse after the earlier ops", async () => {
    const key = 77n << 64n
    const nonces = [sequence, sequence + 1n, sequence + 1n, key, key | 2n, key | 2n]
    const measures = await look(nonces.map((nonce) => opFrom(wallet, nonce, holder, "0x")))
    expect(measures.map(({ nonceAccepted }) => nonceAccepted)).toEqual([true, true, false, true, false, true])
    expect(new Set(stages(measures))).toEqual(new Set(["ok"]))
  })

  it("a measure counts the claims of earlier ops of the same wallet", async () => {
    const poor = await create("poor")
    await world.clearDeposit(version, poor.address)
    await world.setBalance(poor.address, 1000n)
    const op = (nonce: bigint, value = 0n) => opFrom(poor, nonce, holder, "0x", value)
    expect(await look([op(1n), op(2n)], { requiredPrefund: 700n })).toMatchObject([
      { stage: "ok", shortfall: 0n },
      { stage: "ok", shortfall: 400n }
    ])
    await deposit(poor.address, 900n)
    // 900 of 1,000 are already paid.
    for (const [value, stage] of [
      [100n, "ok"],
      [101n, "call"]
    ] as const) {
      const [, second] = await look([op(1n), op(2n, value)], { requiredPrefund: 900n })
      expect(second).toMatchObject({ stage, shortfall: 0n })
    }
  })

  it("an op pays for itself once earlier ops have claimed the deposit", async () => {
    const payer = await create("payer")
    await world.clearDeposit(version, payer.address)
    await deposit(payer.address, 900n)
    const op = (nonce: bigint) => opFrom(payer, nonce, holder, "0x")
    const [first, second] = await look([op(1n), op(2n)], { requiredPrefund: 900n })
    const paying = await one(op(1n), { requiredPrefund: 1_000n })
    expect(paying.validationGas - (first?.validationGas ?? 0n)).toBeGreaterThan(5_000n)
    expect(second?.validationGas).toBe(paying.validationGas)
  })

  it("the lens re-simulates declared limits as the EntryPoint executes them", async () => {
    const op = opFrom(wallet, sequence, world.token, token("transfer", holder, 1n))
    const { creationGas, validationGas, bookkeepingGas, callGas, stage } = await one(op)
    expect([stage, creationGas]).toEqual(["ok", 0n])
    const total = validationGas + bookkeepingGas
    const enough = await one(op, { verificationGas: total + 3_000n, callGas: callGas + 3_000n })
    expect(enough).toMatchObject({ stage: "ok", validationGas, callGas })
    expect((await one(op, { callGas: callGas - 2_000n })).stage).toBe("call")
    const over = await one(op, { verificationGas: total - 1_000n })
    expect(named(over.data)).toEqual([0n, "AA26 over verificationGasLimit"])
    expect((await one(op, { verificationGas: validationGas - 6_000n })).stage).toBe("validation")
  })

  it("a measure reports that the call has too little gas left to try an op", async () => {
    const op = opFrom(wallet, sequence, holder, "0x")
    const next = { ...op, nonce: op.nonce + 1n }
    const tried = async (given: Given) => {
      const probes = [await world.probe(version, op, given), await world.probe(version, next)]
      const { measures } = await world.look(version, { probes, wallets: [] }, { gas: 8_000_000n })
      return stages(measures)
    }
    expect(await tried({})).toEqual(["starved", "starved"])
    expect(await tried({ callGas: 500_000n })).toEqual(["ok", "starved"])
  })

  it("a measure after the creation of its wallet is marked as measured in company", async () => {
    const unborn = await fresh("followed")
    const first = await world.sign(version, creationOf(unborn), world.deployerProof)
    expect(await look([first, opFrom(unborn, 1n << 64n, holder, "0x")])).toMatchObject([
      { stage: "ok", coldValidation: true, coldCall: true },
      { stage: "ok", coldValidation: false, coldCall: false }
    ])
  })

  it("many ops in too little gas get measures as far as the gas lasts", async () => {
    const given = { verificationGas: 300_000n, callGas: 300_000n, requiredPrefund: 1n }
    const probes = await Promise.all(
      Array.from({ length: 256 }, (_, i) =>
        world.probe(version, opFrom(wallet, BigInt(i + 100) << 64n, holder, "0x"), given)
      )
    )
    const count = async (gas: bigint) => {
      const { measures } = await world.look(version, { probes, wallets: [] }, { gas })
      const of = (holds: (measure: GasLens.Measure) => boolean) => measures.filter(holds).length
      expect(of(({ stage }) => stage === "ok" || stage === "starved")).toBe(256)
      return { ok: of(({ stage }) => stage === "ok"), cold: of(({ coldCall }) => coldCall) }
    }
    expect(await count(62_000_000n)).toEqual({ ok: 256, cold: 256 })
    const partly = await count(42_000_000n)
    expect(partly.ok).toBe(256)
    expect(partly.cold).toBeGreaterThan(50)
    expect(partly.cold).toBeLessThan(256)
    expect(await count(16_000_000n)).toEqual({ ok: 0, cold: 0 })
  })

  it("a measure includes the state of chain, wallets and beacon before the ops", async () => {
    const { beacon, implementation } = world.suite
    const ask = async (name: string, ...args: ReadonlyArray<unknown>): Promise<bigint> => {
      const data = entryPointAbi.encodeFunctionData(name, args)
      return BigInt(await world.provider.call({ to: world.entryPoint(version), data }))
    }
    const hashAt = async (address: string) => keccak256(await world.provider.getCode(address))
    const nonceKeys = [0n, 1n, (1n << 192n) - 1n]
    const report = await world.look(version, {
      probes: [await world.probe(version, opFrom(wallet, sequence, holder, "0x"))],
      wallets: [wallet.address, nowhere, wallet.address],
      nonceKeys,
      beacon: Address.unsafe(beacon)
    })
    expect(report).toMatchObject({
      chainId: 31337n,
      block: { gasLimit: 30_000_000n },
      implementation: { address: implementation, codeHash: await hashAt(implementation) }
    })
    expect(report.block.number).toBeGreaterThanOrEqual(BigInt(await world.provider.getBlockNumber()))
    const used = async (key: bigint) => (await ask("getNonce", wallet.address, key)) & 0xffffn
    const state = {
      deposit: await ask("balanceOf", wallet.address),
      balance: await world.provider.getBalance(wallet.address),
      deployed: true,
      codeHash: await hashAt(wallet.address),
      sequences: await Promise.all(nonceKeys.map(used))
    }
    expect(state.sequences[0]).toBe(sequence)
    const empty = { deposit: 0n, balance: 0n, deployed: false, sequences: [0n, 0n, 0n] }
    expect(report.wallets).toEqual([state, expect.objectContaining(empty), state])
  })

  it("a measure needs neither an op nor a working beacon", async () => {
    const none = await world.look(version, { probes: [], wallets: [wallet.address] })
    expect([none.implementation, none.wallets[0]?.sequences.length]).toEqual([null, 16])
    for (const beacon of [world.token, nowhere])
      expect((await world.look(version, { probes: [], wallets: [], beacon })).implementation).toBe(null)
  })

  it("a measure sees overridden balances and slots, including the EntryPoint's", async () => {
    const pauper = await ecdsaWallet(world, `pauper ${version}`)
    const creation = await world.sign(version, creationOf(pauper), world.deployerProof)
    const request = { probes: [await world.probe(version, creation)], wallets: [pauper.address] }
    expect((await world.look(version, request)).measures[0]?.shortfall).toBeGreaterThan(0n)
    const extra = { [pauper.address]: { balance: "0xde0b6b3a7640000" } }
    const rich = await world.look(version, request, { extra })
    expect([rich.measures[0]?.shortfall, rich.wallets[0]?.balance]).toEqual([0n, ether])
  })
})
