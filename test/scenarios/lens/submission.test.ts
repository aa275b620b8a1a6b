import * as Either from "effect/Either"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import { reverterAbi, tokenAbi } from "../../support/lens/Abis.js"
import { completed, withLimits } from "../../support/lens/Limits.js"
import { passkeyWallet } from "../../support/lens/Passkeys.js"
import { creationOf, ecdsaWallet, execute, opOf, type TestWallet } from "../../support/lens/Wallets.js"
import { dummyEcdsa, holder, type Op, World } from "../../support/lens/World.js"

let world: World

beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

const transfer = (): string => execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 5n]))
/** Refund (EIP-3529) that a transaction has when it leaves the wallet's deposit exactly as it was. */
const restored = 2_800
const noOvershoot = { bound: 30_000_000n, overshoot: Percent.zero }

interface Step {
  readonly name: string
  readonly op: Op
  readonly prove: (hash: string) => string
  readonly dummy: (hash: string) => string
  readonly beneficiary?: string
}

const creation = (wallet: TestWallet): Step => ({
  name: "creation",
  op: creationOf(wallet),
  prove: world.deployerProof,
  dummy: dummyEcdsa
})

const stepsOf = (wallet: TestWallet, version: Version): ReadonlyArray<Step> => {
  const of = (name: string, nonce: bigint, callData: string, beneficiary?: string): Step => ({
    name,
    op: opOf(wallet, nonce, callData),
    prove: wallet.prove,
    dummy: wallet.dummy,
    ...(beneficiary !== undefined && { beneficiary })
  })
  const data = (bytes: number, fill: string) => execute(holder, 0n, `0x${fill.repeat(bytes)}`)
  return [
    creation(wallet),
    of("ERC-20, first use of a key", 1n << 64n, transfer()),
    of("ERC-20, used key", 1n, transfer()),
    of("no call", 2n, "0x"),
    of("2,000 bytes", 3n, data(2_000, "ab")),
    of("20,000 bytes", 4n, data(20_000, "ab")),
    of("20,000 zero bytes", 5n, data(20_000, "00")),
    of("ERC-20, empty beneficiary", 6n, transfer(), `0x${"be".repeat(19)}${version.slice(3)}0`)
  ]
}

/** Estimates with a dummy proof, then signs with the limits of the formulas. */
const limited = async (version: Version, step: Step): Promise<Op> => {
  const generous: Op = { ...step.op, callGasLimit: 200_000n, verificationGasLimit: 600_000n }
  const estimated = await world.sign(version, generous, step.dummy)
  const [measured] = await world.measure(version, [estimated])
  const measure = completed(measured, step.name)
  const { callGasLimit, verificationGasLimit } = withLimits(estimated, measure, version)
  const preVerificationGas = Gas.preVerificationGas(estimated, {
    version,
    beneficiaryEmpty: step.beneficiary !== undefined,
    measuredGas: measure.validationGas + measure.bookkeepingGas + measure.callGas
  })
  return world.sign(
    version,
    { ...step.op, callGasLimit, verificationGasLimit, preVerificationGas },
    step.prove
  )
}

/** A funded wallet that may transfer tokens. */
const funded = async (wallet: TestWallet): Promise<TestWallet> => {
  await world.setBalance(wallet.address, 10n ** 20n)
  await world.mint(wallet.address, 10n ** 24n)
  return wallet
}

const measured = async (version: Version, steps: ReadonlyArray<Step>, kind: string) => {
  const rows = []
  for (const step of steps) {
    const op = await limited(version, step)
    const { beneficiary } = step
    const gasLimit = Either.getOrThrow(
      Gas.transactionGasLimit(version, [op], { ...noOvershoot, beneficiaryEmpty: beneficiary !== undefined })
    )
    const outcome = await world.submit(version, [op], { gasLimit, ...(beneficiary && { beneficiary }) })
    const unmetered = outcome.usedGas - (outcome.paidGas - op.preVerificationGas)
    rows.push({
      version,
      op: `${step.name}${kind}`,
      success: outcome.success,
      usedGas: Number(outcome.usedGas),
      paidGas: Number(outcome.paidGas),
      unmetered: Number(unmetered),
      preVerificationGas: Number(op.preVerificationGas),
      over: Number(op.preVerificationGas - unmetered),
      transactionGasLimit: Number(gasLimit)
    })
  }
  return rows
}

describe.each(versions)("what a submitter pays on %s", (version) => {
  it("is what the op pays back, and hardly more where data do not rule the price", async () => {
    const ecdsa = await funded(await ecdsaWallet(world, `submission ${version}`))
    const passkey = await funded(await passkeyWallet(world, `submission ${version}`))
    const rows = [
      ...(await measured(version, stepsOf(ecdsa, version), "")),
      ...(await measured(version, stepsOf(passkey, version).slice(0, 3), ", passkey"))
    ]
    console.table(rows)
    for (const row of rows) {
      expect(row.success, row.op).toBe(true)
      expect(row.over, row.op).toBeGreaterThanOrEqual(0)
      expect(row.over, row.op).toBeLessThanOrEqual(row.op.startsWith("20,000") ? 25_000 : 2_500 + restored)
    }
  })

  it("is shared by the ops of a bundle", async () => {
    const wallet = await funded(await ecdsaWallet(world, `bundle ${version}`))
    await world.submit(version, [await limited(version, creation(wallet))])
    for (const [bundleSize, key] of [
      [2n, 7n],
      [5n, 8n]
    ] as const) {
      const ops: Array<Op> = []
      for (let i = 0n; i < bundleSize; i++) {
        const op = world.dummied({
          ...opOf(wallet, (key << 64n) | i, transfer()),
          verificationGasLimit: 120_000n,
          callGasLimit: 25_000n
        })
        const preVerificationGas = Gas.preVerificationGas(op, { version, bundleSize })
        ops.push(await world.sign(version, { ...op, preVerificationGas }, wallet.prove))
      }
      const gasLimit = Either.getOrThrow(Gas.transactionGasLimit(version, ops, noOvershoot))
      const outcome = await world.submit(version, ops, { gasLimit })
      expect(outcome.success).toBe(true)
      const over = Number(outcome.paidGas - outcome.usedGas)
      console.log(`${version}: a bundle of ${bundleSize} used ${outcome.usedGas} and pays back ${over} more`)
      expect(over).toBeGreaterThanOrEqual(0)
      expect(over).toBeLessThanOrEqual(2_500 * Number(bundleSize))
    }
  })

  it("needs a transaction gas limit near the computed one when calls use what they declare", async () => {
    const wallet = await funded(await ecdsaWallet(world, `limit ${version}`))
    await world.submit(version, [await limited(version, creation(wallet))])
    const burn = execute(world.reverter, 0n, reverterAbi.encodeFunctionData("failOutOfGas"))
    const ops: Array<Op> = []
    for (let i = 0n; i < 3n; i++) {
      const op: Op = {
        ...opOf(wallet, (9n << 64n) | i, burn),
        verificationGasLimit: 150_000n,
        callGasLimit: 2_000_000n
      }
      ops.push(await world.sign(version, op, wallet.prove))
    }
    const gasLimit = Either.getOrThrow(Gas.transactionGasLimit(version, ops, noOvershoot))
    const bundle = await world.simulate(version, ops, gasLimit)
    expect(bundle.reverted).toBe(null)
    expect(bundle.events).toBe(3)
    expect(Number(gasLimit)).toBeLessThan(Number(bundle.usedGas) * 1.2)
  })
})
