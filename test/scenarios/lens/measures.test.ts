import { keccak256 } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { factoryAbi, npmInterface, reverterAbi, tokenAbi, walletAbi } from "../../support/lens/Abis.js"
import {
  created,
  creationOf,
  ecdsaWallet,
  execute,
  opOf,
  type TestWallet
} from "../../support/lens/Wallets.js"
import { type Given, holder, type Op, useWorld } from "../../support/lens/World.js"

const world = useWorld()

const limits = { callGasLimit: 100_000n, verificationGasLimit: 400_000n }

interface Frame {
  readonly to?: string
  readonly gasUsed: string
  readonly calls?: ReadonlyArray<Frame>
}

/** Gas of the frames that a mined bundle of one opened: the factory's, validateUserOp's and the call's. */
const traced = async (
  version: EntryPoint.Version,
  op: Op
): Promise<Record<"creation" | "validation" | "call", number>> => {
  const sent = await world.submitter.sendTransaction({
    to: world.entryPoint(version),
    data: world.handleOps(version, [op], world.submitter.address),
    gasLimit: 5_000_000n
  })
  await sent.wait()
  const root: Frame = await world.provider.send("debug_traceTransaction", [
    sent.hash,
    { tracer: "callTracer" }
  ])
  const below = (frame: Frame | undefined, to: string): number =>
    Number(frame?.calls?.find((call) => call.to === to.toLowerCase())?.gasUsed ?? 0)
  const entryPoint = world.entryPoint(version)
  const inner = root.calls?.find((call) => call.to === entryPoint.toLowerCase())
  return {
    creation: below(root, EntryPoint.senderCreator(entryPoint)),
    validation: below(root, op.sender),
    call: below(inner, op.sender)
  }
}

const only = <A>(items: ReadonlyArray<A>): A => {
  const [item] = items
  if (item === undefined || items.length !== 1) throw new Error(`expected one, got ${items.length}`)
  return item
}

describe.each(EntryPoint.versions)("a measure on %s", (version) => {
  let wallet: TestWallet
  let peer: TestWallet
  let sequence = 1n

  const look = (ops: ReadonlyArray<Op>, given?: Given) => world.measure(version, ops, given)
  const opFrom = (from: TestWallet, nonce: bigint, target: string, data: string, value = 0n): Op =>
    world.dummied({ ...opOf(from, nonce, execute(target, value, data)), ...limits })
  const named = (data: string) => npmInterface(version, "EntryPoint").parseError(data)?.args.toArray()

  const create = async (salt: string): Promise<TestWallet> =>
    created(world, version, await ecdsaWallet(world, `${salt} ${version}`))

  beforeAll(async () => {
    wallet = await create("measured")
    peer = await create("peer")
  })

  it("is what then happens, frame by frame", async () => {
    const fresh = await ecdsaWallet(world, `traced ${version}`)
    await world.setBalance(fresh.address, 10n ** 18n)
    const creation = creationOf(fresh)
    const transfer = execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
    const ops = [
      await world.sign(version, creation, world.deployerProof),
      await world.sign(version, { ...opOf(wallet, sequence++, transfer), ...limits }, wallet.prove),
      await world.sign(
        version,
        { ...opOf(wallet, sequence++, execute(holder, 5n, "0x")), ...limits },
        wallet.prove
      )
    ]
    for (const op of ops) {
      const measure = only(await look([op]))
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
      // A CALL costs its caller 100 warm and 2,600 cold; the lens's detours over the EntryPoint's code cost a few hundred.
      const creationExtra = Number(measure.creationGas) - frames.creation
      const validationExtra = Number(measure.validationGas) - frames.validation
      const callExtra = Number(measure.callGas) - frames.call
      const created = frames.creation > 0
      expect(creationExtra).toBeGreaterThanOrEqual(created ? 2_600 : 0)
      expect(creationExtra).toBeLessThanOrEqual(created ? 3_600 : 0)
      expect(validationExtra).toBeGreaterThanOrEqual(created ? 100 : 2_600)
      expect(validationExtra).toBeLessThanOrEqual(created ? 700 : 3_200)
      expect(callExtra).toBeGreaterThanOrEqual(0)
      expect(callExtra).toBeLessThanOrEqual(300)
    }
  })

  it("tells a failed signature from a good one, and measures both", async () => {
    const op = opFrom(wallet, sequence, world.token, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
    const measure = only(await look([op]))
    expect(measure.stage).toBe("ok")
    expect(GasLens.parseValidationData(measure.validationData).authorizer).toBe(`0x${"0".repeat(39)}1`)
  })

  it("has the return data of the wallet's call", async () => {
    const op = opFrom(
      wallet,
      sequence,
      world.reverter,
      reverterAbi.encodeFunctionData("succeed", ["hello"]),
      3n
    )
    const { data } = only(await look([op]))
    const [inner] = walletAbi.decodeFunctionResult("execute", data)
    expect(reverterAbi.decodeFunctionResult("succeed", inner).toArray()).toEqual([3n])
  })

  it("has the inner revert data of the wallet's call", async () => {
    const failing = (name: string, ...args: ReadonlyArray<unknown>) =>
      opFrom(wallet, sequence, world.reverter, reverterAbi.encodeFunctionData(name, args))
    const reason = only(await look([failing("failWithReason", "no luck today")]))
    expect(reason.stage).toBe("call")
    expect(reverterAbi.parseError(reason.data)?.args.toArray()).toEqual(["no luck today"])
    const custom = only(await look([failing("failCustom", 5n, 3n)]))
    expect(reverterAbi.parseError(custom.data)?.args.toArray()).toEqual([wallet.address, 5n, 3n])
    const panic = only(await look([failing("failDivision", 0n)]))
    expect(reverterAbi.parseError(panic.data)?.args.toArray()).toEqual([0x12n])
    expect(only(await look([failing("failWithoutReason")])).data).toBe("0x")
    expect(only(await look([failing("failOutOfGas")], { callGas: 300_000n })).data).toBe("0x")
  })

  it("names a creation that fails, with the factory's own revert data", async () => {
    const fresh = await ecdsaWallet(world, `refused ${version}`)
    await world.setBalance(fresh.address, 10n ** 18n)
    const other = await ecdsaWallet(world, `another ${version}`)
    const of = (initCode: Hex.Hex) => world.dummied(creationOf({ ...fresh, initCode }))
    const spoilt = Hex.unsafe(fresh.initCode.replace(/.{66}$/, "00".repeat(33)))
    const refused = only(await look([of(spoilt)]))
    expect(refused.stage).toBe("creation")
    expect(factoryAbi.parseError(refused.data)?.name).toBe("InvalidAuthorization")
    expect(named(only(await look([of(other.initCode)])).data)).toEqual([
      0n,
      "AA14 initCode must return sender"
    ])
    const again = world.dummied(creationOf(wallet))
    expect(named(only(await look([again])).data)).toEqual([0n, "AA10 sender already constructed"])
    const nobody = world.dummied({ ...opOf(other, 0n, "0x"), verificationGasLimit: 600_000n })
    expect(named(only(await look([nobody], { requiredPrefund: 0n })).data)).toEqual([
      0n,
      "AA20 account not deployed"
    ])
  })

  it("runs ops on the state that their predecessors left", async () => {
    const approve = tokenAbi.encodeFunctionData("approve", [peer.address, 7n])
    const spend = tokenAbi.encodeFunctionData("transferFrom", [wallet.address, holder, 7n])
    const first = opFrom(wallet, sequence, world.token, approve)
    const second = opFrom(peer, 1n, world.token, spend)
    const [approved, spent] = await look([first, second])
    expect([approved?.stage, approved?.coldCall]).toEqual(["ok", true])
    expect([spent?.stage, spent?.coldValidation, spent?.coldCall]).toEqual(["ok", true, false])
    const [early, late] = await look([second, first])
    expect([early?.stage, late?.stage]).toEqual(["call", "ok"])
    expect(tokenAbi.parseError(early?.data ?? "0x")?.name).toBe("ERC20InsufficientAllowance")
  })

  it("is not smaller in the company of ops that have warmed the same storage", async () => {
    const data = tokenAbi.encodeFunctionData("transfer", [holder, 1n])
    const mine = opFrom(wallet, sequence, world.token, data)
    const theirs = opFrom(peer, 1n, world.token, data)
    const [, behind] = await look([mine, theirs])
    const alone = only(await look([theirs]))
    expect(behind).toEqual(alone)
  })

  it("does not run an op that fails validation, and leaves nothing of it", async () => {
    const approve = tokenAbi.encodeFunctionData("approve", [peer.address, 7n])
    const broken = { ...opFrom(wallet, sequence, world.token, approve), signature: Hex.unsafe("0x1234") }
    const spend = opFrom(
      peer,
      1n,
      world.token,
      tokenAbi.encodeFunctionData("transferFrom", [wallet.address, holder, 7n])
    )
    const next = opFrom(wallet, sequence, world.token, approve)
    const measures = await look([broken, spend, next])
    expect(measures.map(({ stage }) => stage)).toEqual(["validation", "call", "ok"])
    expect(measures[2]?.nonceAccepted).toBe(true)
  })

  it("flags a nonce that the EntryPoint would refuse after the earlier ops", async () => {
    const of = (nonce: bigint) => opFrom(wallet, nonce, holder, "0x")
    const key = 77n << 64n
    const measures = await look([
      of(sequence),
      of(sequence + 1n),
      of(sequence + 1n),
      of(key),
      of(key | 2n),
      of(key | 2n)
    ])
    expect(measures.map(({ nonceAccepted }) => nonceAccepted)).toEqual([true, true, false, true, false, true])
    expect(measures.every(({ stage }) => stage === "ok")).toBe(true)
  })

  it("counts what earlier ops of the same wallet have claimed", async () => {
    const poor = await create("poor")
    await world.clearDeposit(version, poor.address)
    await world.setBalance(poor.address, 1000n)
    const op = (nonce: bigint) => opFrom(poor, nonce, holder, "0x")
    const measures = await look([op(1n), op(2n)], { requiredPrefund: 700n })
    expect(measures.map(({ stage, shortfall }) => [stage, shortfall])).toEqual([
      ["ok", 0n],
      ["ok", 400n]
    ])
    await world.send(
      world.entryPoint(version),
      npmInterface(version, "EntryPoint").encodeFunctionData("depositTo", [poor.address]),
      900n
    )
    for (const [value, stage] of [
      [100n, "ok"],
      [101n, "call"]
    ] as const) {
      const spending = opFrom(poor, 2n, holder, "0x", value)
      const [, second] = await look([op(1n), spending], { requiredPrefund: 900n })
      expect([second?.stage, second?.shortfall], `after paying 900 of 1,000, ${value}`).toEqual([stage, 0n])
    }
  })

  it("is that of an op which pays for itself when the earlier ops have claimed the deposit", async () => {
    const payer = await create("payer")
    await world.clearDeposit(version, payer.address)
    const depositTo = npmInterface(version, "EntryPoint").encodeFunctionData("depositTo", [payer.address])
    await world.send(world.entryPoint(version), depositTo, 900n)
    const op = (nonce: bigint) => opFrom(payer, nonce, holder, "0x")
    const [first, second] = await look([op(1n), op(2n)], { requiredPrefund: 900n })
    const paying = only(await look([op(1n)], { requiredPrefund: 1_000n }))
    expect((paying.validationGas ?? 0n) - (first?.validationGas ?? 0n)).toBeGreaterThan(5_000n)
    expect(second?.validationGas).toBe(paying.validationGas)
  })

  it("re-simulates with declared limits: the same that the EntryPoint does with them", async () => {
    const data = tokenAbi.encodeFunctionData("transfer", [holder, 1n])
    const op = opFrom(wallet, sequence, world.token, data)
    const { creationGas, validationGas, bookkeepingGas, callGas, stage } = only(await look([op]))
    expect([stage, creationGas]).toEqual(["ok", 0n])
    const total = validationGas + bookkeepingGas
    const enough = only(await look([op], { verificationGas: total + 3_000n, callGas: callGas + 3_000n }))
    expect(enough).toMatchObject({ stage: "ok", validationGas, callGas })
    expect(only(await look([op], { callGas: callGas - 2_000n })).stage).toBe("call")
    expect(named(only(await look([op], { verificationGas: total - 1_000n })).data)).toEqual([
      0n,
      "AA26 over verificationGasLimit"
    ])
    expect(only(await look([op], { verificationGas: validationGas - 6_000n })).stage).toBe("validation")
  })

  it("says so when the call has too little gas left to try an op", async () => {
    const op = opFrom(wallet, sequence, holder, "0x")
    const probes = [
      await world.probe(version, op),
      await world.probe(version, { ...op, nonce: op.nonce + 1n })
    ]
    const tight = await world.look(version, { probes, wallets: [] }, { gas: 8_000_000n })
    expect(tight.measures.map(({ stage }) => stage)).toEqual(["starved", "starved"])
    const some = await world.look(
      version,
      { probes: [await world.probe(version, op, { callGas: 500_000n }), ...probes.slice(1)], wallets: [] },
      { gas: 8_000_000n }
    )
    expect(some.measures.map(({ stage }) => stage)).toEqual(["ok", "starved"])
  })

  it("of ops behind the creation of their wallet is marked as one of the company only", async () => {
    const fresh = await ecdsaWallet(world, `followed ${version}`)
    await world.setBalance(fresh.address, 10n ** 18n)
    const creation = creationOf(fresh)
    const first = await world.sign(version, creation, world.deployerProof)
    const second = opFrom(fresh, 1n << 64n, holder, "0x")
    const [created, used] = await look([first, second])
    expect([created?.stage, created?.coldValidation, created?.coldCall]).toEqual(["ok", true, true])
    expect([used?.stage, used?.coldValidation, used?.coldCall]).toEqual(["ok", false, false])
  })

  it("of many ops in too little gas is given for those that the gas suffices for", async () => {
    const all = await Promise.all(
      Array.from({ length: 256 }, (_, i) =>
        world.probe(version, opFrom(wallet, BigInt(i + 100) << 64n, holder, "0x"), {
          verificationGas: 300_000n,
          callGas: 300_000n,
          requiredPrefund: 1n
        })
      )
    )
    const count = async (probes: ReadonlyArray<GasLens.Probe>, gas: bigint) => {
      const { measures } = await world.look(version, { probes, wallets: [] }, { gas })
      const of = (holds: (measure: GasLens.Measure) => boolean) => measures.filter(holds).length
      expect(of(({ stage }) => stage === "ok" || stage === "starved")).toBe(probes.length)
      return { ok: of(({ stage }) => stage === "ok"), cold: of(({ coldCall }) => coldCall) }
    }
    expect(await count(all, 62_000_000n)).toEqual({ ok: 256, cold: 256 })
    const partly = await count(all, 42_000_000n)
    expect(partly.ok).toBe(256)
    expect(partly.cold).toBeGreaterThan(50)
    expect(partly.cold).toBeLessThan(256)
    expect(await count(all, 16_000_000n)).toEqual({ ok: 0, cold: 0 })
  })

  it("comes with the state of the chain, the wallets and the beacon before the ops", async () => {
    const { beacon, implementation } = world.suite
    const entryPoint = npmInterface(version, "EntryPoint")
    const ask = async (name: string, ...args: ReadonlyArray<unknown>): Promise<bigint> =>
      BigInt(
        await world.provider.call({
          to: world.entryPoint(version),
          data: entryPoint.encodeFunctionData(name, args)
        })
      )
    const unborn = Address.unsafe(`0x${"ab".repeat(20)}`)
    const nonceKeys = [0n, 1n, (1n << 192n) - 1n]
    const report = await world.look(version, {
      probes: [await world.probe(version, opFrom(wallet, sequence, holder, "0x"))],
      wallets: [wallet.address, unborn, wallet.address],
      nonceKeys,
      beacon: Address.unsafe(beacon)
    })
    expect(report.chainId).toBe(31337n)
    expect(report.block.gasLimit).toBe(30_000_000n)
    expect(report.block.number).toBeGreaterThanOrEqual(BigInt(await world.provider.getBlockNumber()))
    expect(report.implementation).toEqual({
      address: implementation,
      codeHash: keccak256(await world.provider.getCode(implementation))
    })
    const [state, empty, repeated] = report.wallets
    expect(state).toEqual({
      deposit: await ask("balanceOf", wallet.address),
      balance: await world.provider.getBalance(wallet.address),
      deployed: true,
      codeHash: keccak256(await world.provider.getCode(wallet.address)),
      sequences: await Promise.all(
        nonceKeys.map(async (key) => (await ask("getNonce", wallet.address, key)) & 0xffffn)
      )
    })
    expect(state?.sequences[0]).toBe(sequence)
    expect(repeated).toEqual(state)
    expect(empty).toMatchObject({ deposit: 0n, balance: 0n, deployed: false, sequences: [0n, 0n, 0n] })
  })

  it("needs no op, and no beacon that answers", async () => {
    const none = await world.look(version, { probes: [], wallets: [wallet.address] })
    expect(none.implementation).toBe(null)
    expect(none.wallets[0]?.sequences).toHaveLength(16)
    for (const beacon of [world.token, Address.unsafe(`0x${"ab".repeat(20)}`)])
      expect((await world.look(version, { probes: [], wallets: [], beacon })).implementation).toBe(null)
  })

  it("sees overridden balances and slots, those of the EntryPoint included", async () => {
    const pauper = await ecdsaWallet(world, `pauper ${version}`)
    const creation = await world.sign(version, creationOf(pauper), world.deployerProof)
    const request = { probes: [await world.probe(version, creation)], wallets: [pauper.address] }
    expect((await world.look(version, request)).measures[0]?.shortfall).toBeGreaterThan(0n)
    const rich = await world.look(version, request, {
      extra: { [pauper.address]: { balance: "0xde0b6b3a7640000" } }
    })
    expect([rich.measures[0]?.shortfall, rich.wallets[0]?.balance]).toEqual([0n, 10n ** 18n])
  })
})
