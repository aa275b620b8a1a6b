import { describe, expect, it } from "@effect/vitest"
import * as BigInts from "effect/BigInt"
import * as Result from "effect/Result"
import fc from "fast-check"
import { type Version, versions } from "../../../../src/domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../../src/domain/erc4337/entrypoint/EntryPointSpec.js"
import * as DataCost from "../../../../src/domain/erc4337/gas/DataCost.js"
import * as Gas from "../../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../../src/domain/erc4337/Percent.js"
import * as PaymasterData from "../../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { address, forAll } from "../../generators.js"

const percentOf = (text: string) => Result.getOrThrow(Percent.from(text))
const percents = fc.bigInt({ min: 0n, max: 10_000_000n }).map((units) => ({
  units,
  percent: percentOf(`${units / 10_000n}.${String(units % 10_000n).padStart(4, "0")}`)
}))
const bytes = (most: number) => fc.uint8Array({ maxLength: most }).map(Hex.fromBytes)
const ops: fc.Arbitrary<UserOperation.UserOperation> = fc.record({
  sender: address,
  nonce: fc.bigUintN(256),
  initCode: bytes(400),
  callData: bytes(2_000),
  callGasLimit: fc.bigUintN(24),
  verificationGasLimit: fc.bigUintN(24),
  preVerificationGas: fc.bigUintN(24),
  maxFeePerGas: fc.bigUintN(120),
  maxPriorityFeePerGas: fc.bigUintN(120),
  paymasterAndData: fc.constant(Hex.empty),
  signature: bytes(400)
})
const beneficiary = Address.unsafe(`0x${"fe".repeat(20)}`)
const most = 2n ** 24n - 1n
const blank: UserOperation.UserOperation = {
  sender: beneficiary,
  nonce: 0n,
  initCode: Hex.empty,
  callData: Hex.empty,
  callGasLimit: most,
  verificationGasLimit: most,
  preVerificationGas: 0n,
  maxFeePerGas: 1n,
  maxPriorityFeePerGas: 1n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty
}

/** Intrinsic gas of a transaction with this calldata (EIP-2028 and EIP-7623), counted byte by byte. */
const intrinsic = (data: string): { readonly usual: bigint; readonly floor: bigint } => {
  const all = [...Buffer.from(data.slice(2), "hex")]
  const zeros = BigInt(all.filter((byte) => byte === 0).length)
  const others = BigInt(all.length) - zeros
  return { usual: 21_000n + 4n * zeros + 16n * others, floor: 21_000n + 10n * (zeros + 4n * others) }
}

describe("leastOf", () => {
  it("leastOf is the data's intrinsic cost, or the floor of EIP-7623", () => {
    forAll([bytes(400)], (data) => {
      const { usual, floor } = intrinsic(data)
      expect(Gas.intrinsic(data)).toBe(usual)
      expect(Gas.leastOf(data)).toBe(BigInts.max(usual, floor))
    })
  })
})

describe("overshoot", () => {
  it("overshoot is the smallest integer that is not below the exact product", () => {
    forAll([fc.bigUintN(256), percents], (x, { units, percent }) => {
      const exact = x * (1_000_000n + units)
      const result = Gas.overshoot(x, percent)
      expect(result * 1_000_000n >= exact && (result - 1n) * 1_000_000n < exact).toBe(true)
    })
  })

  it("overshoot is exact where floating point is not", () => {
    for (const [value, percent, expected] of [
      [3n, "50", 5n],
      [1_000_000n, "0.0001", 1_000_001n],
      [100n, "10", 110n],
      [2n ** 200n, "1000", 11n * 2n ** 200n],
      [12_345n, "0", 12_345n],
      [0n, "50", 0n]
    ] as const)
      expect(Gas.overshoot(value, percentOf(percent))).toBe(expected)
  })
})

describe("op gas limits", () => {
  const measure = {
    creationGas: 0n,
    validationGas: 20_000n,
    bookkeepingGas: 10_000n,
    callGas: 17_000n,
    coldValidation: true,
    coldCall: true,
    paymasterGas: 15_000n,
    postOpGas: 0n,
    callLimit: 17_500n,
    paymasterLimit: 15_300n,
    postOpLimit: 0n
  }
  const data = { initCode: Hex.empty, callData: Hex.empty, paymasterAndData: Hex.empty, signature: Hex.empty }

  it("exceed what was measured, and grow with it", () => {
    forAll([ops, fc.bigUintN(30), fc.bigUintN(30)], (op, validationGas, callLimit) => {
      const one = { ...measure, validationGas, callLimit }
      for (const version of versions) {
        const verification = Gas.verificationGasLimit(version, one, op)
        // Two calls lie inside each other in a validation.
        expect((verification - measure.bookkeepingGas) * 31n).toBeGreaterThan(validationGas * 32n)
        const more = { ...one, validationGas: validationGas + 1_000n }
        const least = verification + 1_000n
        expect(Gas.verificationGasLimit(version, more, op)).toBeGreaterThan(least)
      }
      expect(Gas.callGasLimit(one, Hex.unsafe("0x01"))).toBe(callLimit)
    })
  })

  it("op gas limits follow the stated formulas", () => {
    const verification = (rest: Partial<typeof measure>) =>
      versions.map((version) => Gas.verificationGasLimit(version, { ...measure, ...rest }, data))
    expect(verification({})).toEqual([34_925n, 33_425n, 33_925n])
    expect(verification({ creationGas: 128_000n })).toEqual([171_125n, 169_625n, 170_125n])
    expect(verification({ coldValidation: false })).toEqual([49_925n, 48_425n, 48_925n])
    expect(verification({ validationGas: 320_000n })).toEqual([366_300n, 364_800n, 365_300n])
    const sized = {
      initCode: Hex.unsafe(`0x${"01".repeat(32)}`),
      callData: Hex.unsafe(`0x${"01".repeat(33)}`),
      paymasterAndData: Hex.unsafe(`0x${"01".repeat(52)}`),
      signature: Hex.unsafe(`0x${"01".repeat(65)}`)
    }
    // 182 bytes are six words; a paymaster's data are checked.
    expect(Gas.verificationGasLimit("v0.7", measure, sized)).toBe(33_425n + 6n * 16n + 3_000n)
    expect(Gas.paymasterVerificationGasLimit(measure, sized)).toBe(17_500n + 6n * 4n)
    expect(Gas.callGasLimit(measure, Hex.unsafe("0x01"))).toBe(17_500n)
    expect(Gas.callGasLimit({ ...measure, coldCall: false }, Hex.unsafe("0x01"))).toBe(37_500n)
    expect(Gas.callGasLimit(measure, Hex.empty)).toBe(0n)
    expect(Gas.paymasterVerificationGasLimit(measure, data)).toBe(17_500n)
    expect(Gas.paymasterVerificationGasLimit({ ...measure, coldValidation: false }, data)).toBe(32_500n)
    expect(Gas.paymasterVerificationGasLimit(measure, { ...data, signature: Hex.unsafe("0x01") })).toBe(
      17_504n
    )
    expect(Gas.postOpGasLimit(measure)).toBe(0n)
    expect(Gas.postOpGasLimit({ postOpLimit: 20_000n })).toBe(20_000n)
    expect(Gas.unverifiedLimit(20_000n)).toBe(27_000n)
  })

  it("gas limits of a paymaster are separate and not lowered from v0.7 on, shared on v0.6", () => {
    const whole = {
      ...measure,
      stage: "ok" as const,
      nonceAccepted: true,
      validationData: 0n,
      paymasterData: 0n,
      shortfall: 0n,
      data: Hex.empty
    }
    const gas = fc.bigUintN(30)
    const buffers = percents.map(({ percent }) => percent)
    forAll([ops, gas, gas, buffers, fc.bigUintN(24)], (op, paymasterLimit, postOpLimit, percent, wanted) => {
      const seen = { ...whole, paymasterLimit, postOpLimit }
      for (const version of versions) {
        const limits = { verificationGasLimit: wanted, postOpGasLimit: wanted }
        const paymaster = { paymaster: op.sender, limits, data: Hex.unsafe("0x01") }
        const own = Gas.meteredLimits(version, op, seen, percent)
        expect(own.paymasterAndData).toBe(Hex.empty)
        const alone = Gas.verificationGasLimit(version, seen, op)
        expect(own.verificationGasLimit).toBe(Gas.overshoot(alone, percent))
        const sponsored = { ...op, paymasterAndData: PaymasterData.make(version, paymaster) }
        const given = Gas.meteredLimits(version, sponsored, seen, percent)
        expect(given.callGasLimit).toBe(own.callGasLimit)
        const verification = Gas.paymasterVerificationGasLimit(seen, sponsored)
        const postOp = Gas.postOpGasLimit(seen)
        const wallet = Gas.verificationGasLimit(version, seen, sponsored)
        if (version === "v0.6") {
          expect(given.paymasterAndData).toBe(sponsored.paymasterAndData)
          const shared = BigInts.max(wallet + verification, postOp)
          expect(given.verificationGasLimit).toBe(Gas.overshoot(shared, percent))
          continue
        }
        expect(given.verificationGasLimit).toBe(Gas.overshoot(wallet, percent))
        const most = (measured: bigint) => BigInts.max(Gas.overshoot(measured, percent), wanted)
        expect(PaymasterData.read(version, given.paymasterAndData)).toEqual({
          ...paymaster,
          limits: { verificationGasLimit: most(verification), postOpGasLimit: most(postOp) }
        })
      }
    })
  })
})

describe.each(versions)("preVerificationGas on %s", (version: Version) => {
  it("covers the calldata of a bundle of one, whatever the gas fields will be, and what the EntryPoint does around it", () => {
    forAll([ops], (op) => {
      const { usual } = intrinsic(UserOperation.handleOps(version, [op], beneficiary))
      const words = BigInt(Math.ceil(UserOperation.encode(version, op).length / 64))
      const rest = Gas.preVerificationGas(op, { version, measuredGas: 10_000_000n }) - usual - 10n * words
      expect(rest).toBeGreaterThanOrEqual(17_900n)
      expect(rest).toBeLessThanOrEqual(17_900n + 2_600n + 1_500n)
    })
  })

  it("preVerificationGas covers the floor price of data when the op executes little", () => {
    forAll([ops], (op) => {
      const { floor } = intrinsic(UserOperation.handleOps(version, [op], beneficiary))
      expect(Gas.preVerificationGas(op, { version })).toBeGreaterThanOrEqual(floor)
      expect(Gas.preVerificationGas(op, { version, measuredGas: 7_000n })).toBeGreaterThanOrEqual(
        floor - 7_000n
      )
    })
  })

  it("preVerificationGas of an idle op with much data is little above the floor price", () => {
    const op = { ...blank, callData: Hex.unsafe(`0x${"ff".repeat(20_000)}`), preVerificationGas: most }
    const { floor } = intrinsic(UserOperation.handleOps(version, [op], beneficiary))
    const gas = Gas.preVerificationGas(op, { version })
    expect(gas).toBeGreaterThanOrEqual(floor)
    expect(gas).toBeLessThanOrEqual(floor + 500n)
    expect(Gas.preVerificationGas(op, { version, measuredGas: 7_000n })).toBe(gas - 7_000n)
  })

  it("preVerificationGas of an op alone covers all costs of its transaction, and has all of the layer 1 gas", () => {
    forAll([ops, fc.bigUintN(40)], (op, l1Gas) => {
      const { usual } = intrinsic(UserOperation.handleOps(version, [op], beneficiary))
      const plain = Gas.preVerificationGas(op, { version, measuredGas: 10_000_000n })
      expect(plain).toBeGreaterThanOrEqual(usual + 7_000n)
      expect(Gas.preVerificationGas(op, { version, measuredGas: 10_000_000n, l1Gas })).toBe(plain + l1Gas)
    })
  })
})

describe("l1DataGas", () => {
  it("l1DataGas is the fee and a fifth in gas, rounded up", () => {
    expect(Gas.l1DataGas(1_000n, 7n)).toBe(172n)
    expect(Gas.l1DataGas(0n, 7n)).toBe(0n)
    expect(Gas.l1DataGas(1_000n, 0n)).toBe(0n)
    forAll([fc.bigUintN(90), fc.bigUintN(60)], (fee, price) => {
      const gas = Gas.l1DataGas(fee, price + 1n)
      expect(gas * (price + 1n) * 10n).toBeGreaterThanOrEqual(fee * 12n)
    })
  })
})

it("requiredPrefund is the sum of the limits at the highest fee, and counts a paymaster as each version does", () => {
  const half = (value: bigint) => value.toString(16).padStart(32, "0")
  const prefund = (version: Version, paymasterAndData: string) =>
    Gas.requiredPrefund(version, {
      callGasLimit: 1n,
      verificationGasLimit: 10n,
      preVerificationGas: 100n,
      maxFeePerGas: 1_000n,
      paymasterAndData: Hex.unsafe(paymasterAndData)
    })
  const paymaster = `0x${"ab".repeat(20)}`
  for (const version of versions) expect(prefund(version, "0x")).toBe(111_000n)
  expect(prefund("v0.6", paymaster)).toBe(131_000n)
  for (const version of ["v0.7", "v0.8"] as const)
    expect(prefund(version, `${paymaster}${half(1_000n)}${half(10_000n)}ffff`)).toBe(11_111_000n)
})

describe.each(versions)("transactionGasLimit on %s", (version: Version) => {
  const bundles = fc.array(ops, { minLength: 1, maxLength: 5 })
  const bound = 1n << 60n

  const half = (value: bigint) => value.toString(16).padStart(32, "0")
  const paymaster = Address.unsafe(`0x${"ab".repeat(20)}`)
  /** The ops with a paymaster, or without. */
  const paid = (op: UserOperation.UserOperation, limits: readonly [bigint, bigint] | null) =>
    limits === null
      ? op
      : {
          ...op,
          paymasterAndData: Hex.unsafe(
            `${paymaster}${version === "v0.6" ? "" : half(limits[0]) + half(limits[1])}`
          )
        }
  const sponsoredOps = fc
    .tuple(ops, fc.option(fc.tuple(fc.bigUintN(22), fc.bigUintN(22))))
    .map(([op, limits]) => ({ op: paid(op, limits), limits }))
  const limitOf = (
    bundle: ReadonlyArray<UserOperation.UserOperation>,
    percent: Percent.Percent = Percent.zero,
    withoutPostOp: Address.Address | null = null
  ) =>
    Result.getOrThrow(Gas.transactionGasLimit(version, bundle, { bound, overshoot: percent, withoutPostOp }))

  it("lasts for what the EntryPoint demands before each call, when all before it have used what they declare", () => {
    forAll([fc.array(sponsoredOps, { minLength: 1, maxLength: 5 })], (bundle) => {
      const list = bundle.map(({ op }) => op)
      const limit = limitOf(list)
      const { usual, floor } = intrinsic(UserOperation.handleOps(version, list, beneficiary))
      expect(limit).toBeGreaterThanOrEqual(floor)
      let left = limit - usual
      for (const { limits, op } of bundle)
        left -= op.verificationGasLimit + (version === "v0.6" ? 0n : (limits?.[0] ?? 0n))
      for (const { limits, op } of bundle) {
        // innerHandleOp is given 63 of 64 parts, the call 63 of 64 of those.
        const inner = (left * 63n) / 64n
        if (version === "v0.6") {
          expect(inner).toBeGreaterThanOrEqual(op.callGasLimit + op.verificationGasLimit + 5_000n)
          expect((inner * 63n) / 64n).toBeGreaterThanOrEqual(op.callGasLimit)
          left -= op.callGasLimit + (limits === null ? 0n : 2n * op.verificationGasLimit)
        } else {
          const postOp = limits?.[1] ?? 0n
          expect((inner * 63n) / 64n).toBeGreaterThanOrEqual(op.callGasLimit + postOp + 10_000n)
          left -= op.callGasLimit + postOp
        }
      }
      expect(left).toBeGreaterThanOrEqual(0n)
    })
  })

  it("holds no postOp of a paymaster that is known to want none, on v0.6, where its limit is the wallet's", () => {
    forAll([ops], (op) => {
      const with06 = paid(op, [0n, 0n])
      const without = limitOf([with06], Percent.zero, paymaster)
      expect(limitOf([with06]) >= without + (version === "v0.6" ? 2n * op.verificationGasLimit : 0n)).toBe(
        true
      )
    })
  })

  it("is the transaction's own cost, its verifications, first deposits, and the most that the calls ask for", () => {
    const { perBundle, perOp } = EntryPointSpec[version].gas.unmetered
    const limitFor = (...bundle: ReadonlyArray<UserOperation.UserOperation>) => {
      const costs = bundle.map((op) => DataCost.ofOp(version, op))
      const words = costs.reduce((sum, { bytes }) => sum + bytes / 32n, 0n)
      const own =
        21_000n +
        DataCost.add(DataCost.handleOpsFrame, ...costs).gas +
        perBundle +
        perOp * BigInt(bundle.length)
      return limitOf(bundle) - own - 10n * words
    }
    const declared = (op: UserOperation.UserOperation) => EntryPointSpec[version].gas.declared(op, null)
    const large = { ...blank, callGasLimit: 0n, verificationGasLimit: 2_000_000n }
    const { execution, inHand, verification } = declared(large)
    const most = [inHand, execution, (verification + 62n) / 63n].reduce((x, y) => BigInts.max(x, y))
    expect(limitFor(large)).toBe(verification + 20_000n + most)
    const small = { ...large, verificationGasLimit: 1_000n }
    const both = declared(small)
    const after = [inHand, execution + both.inHand, execution + both.execution, (verification + 62n) / 63n]
    expect(limitFor(large, small)).toBe(
      verification + both.verification + 20_000n + after.reduce((x, y) => BigInts.max(x, y))
    )
    // With a paymaster, no deposit is written for the first time.
    const sponsored = paid(large, [0n, 0n])
    const payer = { limits: PaymasterData.noLimits, settles: true }
    const of = EntryPointSpec[version].gas.declared(sponsored, payer)
    const frames = [of.inHand, of.execution, (of.verification + 62n) / 63n]
    const dataWords = BigInt(version === "v0.6" ? 17 : 16)
    const { bytes } = DataCost.ofOp(version, sponsored)
    expect([bytes / 32n, limitFor(sponsored)]).toEqual([
      dataWords,
      of.verification + frames.reduce((x, y) => BigInts.max(x, y))
    ])
  })

  it("has what a first deposit takes for each wallet that pays for itself", () => {
    forAll([ops], (op) => {
      const [one, other] = [
        { ...op, sender: beneficiary },
        { ...op, sender: paymaster }
      ]
      const [shared, apart] = [limitOf([one, one]), limitOf([one, other])]
      const both = intrinsic(UserOperation.handleOps(version, [one, other], beneficiary))
      if (shared > both.floor + 40_000n) expect(apart).toBe(shared + 20_000n)
    })
  })

  it("the gas limit is at most the ops' declared gas, a fiftieth of the largest, and overhead", () => {
    forAll([bundles], (bundle) => {
      const declared = bundle.map((op) => op.callGasLimit + op.verificationGasLimit)
      const { floor, usual } = intrinsic(UserOperation.handleOps(version, bundle, beneficiary))
      const most =
        declared.reduce((sum, each) => sum + each, 0n) +
        declared.reduce((one, other) => BigInts.max(one, other)) / (version === "v0.6" ? 1n : 25n) +
        (version === "v0.6" ? declared.reduce((one, other) => BigInts.max(one, other)) / 25n : 0n)
      const size = BigInt(Hex.size(UserOperation.handleOps(version, bundle, beneficiary)))
      const beside = 75_000n + BigInt(bundle.length) * 31_000n + size
      expect(limitOf(bundle)).toBeLessThanOrEqual(BigInts.max(usual + most + beside, floor + size * 10n))
    })
  })

  it("the gas limit is overshot up to the bound, and refused only when it exceeds the bound without the overshoot", () => {
    forAll([bundles, percents], (bundle, { percent }) => {
      const needed = limitOf(bundle)
      const wished = limitOf(bundle, percent)
      expect(wished).toBeGreaterThanOrEqual(needed)
      expect(wished).toBeLessThanOrEqual(Gas.overshoot(needed, percent))
      const { usual } = intrinsic(UserOperation.handleOps(version, bundle, beneficiary))
      expect(wished - needed).toBeGreaterThanOrEqual(
        Gas.overshoot(usual, percent) - usual - BigInts.max(0n, needed - usual)
      )
      const within = (most: bigint) =>
        Gas.transactionGasLimit(version, bundle, { bound: most, overshoot: percent })
      expect(within(needed)).toEqual(Result.succeed(needed))
      expect(within(wished - 1n)).toEqual(
        wished === needed
          ? Result.fail(new Gas.BundleTooLarge({ needed, bound: wished - 1n }))
          : Result.succeed(wished - 1n)
      )
      expect(within(needed - 1n)).toEqual(Result.fail(new Gas.BundleTooLarge({ needed, bound: needed - 1n })))
    })
  })
})
