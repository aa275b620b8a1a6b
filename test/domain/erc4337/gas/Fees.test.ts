import { describe, expect, it } from "@effect/vitest"
import * as BigInts from "effect/BigInt"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Fees from "../../../../src/domain/erc4337/gas/Fees.js"
import { overshoot } from "../../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../../src/domain/erc4337/Percent.js"
import { forAll } from "../../generators.js"

const wei = fc.bigInt({ min: 0n, max: 10n ** 14n })
const percent = fc.integer({ min: 0, max: 1000 }).map((value) => Result.getOrThrow(Percent.from(value)))
const bounds: fc.Arbitrary<Fees.Bounds> = fc.record({
  maxFeePerGas: wei,
  maxPriorityFeePerGas: wei,
  minPriorityFeePerGas: fc.oneof(fc.constant(0n), wei)
})

const within = (cap: bigint, tipCap = cap, least = 0n): Fees.Bounds => ({
  maxFeePerGas: cap,
  maxPriorityFeePerGas: tipCap,
  minPriorityFeePerGas: least
})

describe("Fees", () => {
  it("fees never exceed the operator's caps, and cover the next block with the buffer up to the cap", () => {
    forAll([wei, wei, percent, bounds], (nextBaseFee, asked, buffer, caps) => {
      const { maxFeePerGas: cap, maxPriorityFeePerGas: tipCap, minPriorityFeePerGas: least } = caps
      const quote = Fees.quote({ nextBaseFee, tip: asked }, caps, (price) => overshoot(price, buffer))
      const tip = BigInts.max(BigInts.min(asked, tipCap), least)
      if (Result.isFailure(quote)) {
        expect(least > tipCap || nextBaseFee + tip > cap).toBe(true)
        expect(quote.failure._tag).toBe("AboveCap")
        expect(quote.failure.needed).toBeGreaterThan(quote.failure.cap)
        return
      }
      const { legacy, maxFeePerGas, maxPriorityFeePerGas } = quote.success
      expect(legacy).toBe(false)
      expect(maxFeePerGas).toBe(BigInts.min(overshoot(nextBaseFee + tip, buffer), cap))
      expect(maxFeePerGas).toBeGreaterThanOrEqual(nextBaseFee + tip)
      expect(maxFeePerGas).toBeLessThanOrEqual(cap)
      expect(maxPriorityFeePerGas).toBe(tip)
      expect(maxPriorityFeePerGas).toBeGreaterThanOrEqual(least)
      expect(maxPriorityFeePerGas).toBeLessThanOrEqual(tipCap)
    })
  })

  it("fees without a base fee are one gas price between the minimum and the cap, for any tips", () => {
    forAll([wei, percent, bounds], (gasPrice, buffer, caps) => {
      const needed = BigInts.max(gasPrice, caps.minPriorityFeePerGas)
      const quote = Fees.quote({ nextBaseFee: null, tip: gasPrice }, caps, (price) =>
        overshoot(price, buffer)
      )
      if (needed > caps.maxFeePerGas) {
        expect(quote).toEqual(Result.fail(new Fees.AboveCap({ needed, cap: caps.maxFeePerGas })))
        return
      }
      const price = BigInts.min(overshoot(needed, buffer), caps.maxFeePerGas)
      expect(quote).toEqual(
        Result.succeed({ maxFeePerGas: price, maxPriorityFeePerGas: price, legacy: true })
      )
    })
  })

  it.each([
    [90n, 10n, { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false }],
    [91n, 10n, new Fees.AboveCap({ needed: 101n, cap: 100n })],
    [null, 100n, { maxFeePerGas: 100n, maxPriorityFeePerGas: 100n, legacy: true }],
    [null, 101n, new Fees.AboveCap({ needed: 101n, cap: 100n })]
  ])(
    "fees of %s and %s are quoted at exactly the cap, or refused one wei above it",
    (nextBaseFee, tip, expected) => {
      const quote = Fees.quote({ nextBaseFee, tip }, within(100n), (price) => price * 2n)
      expect(Result.merge(quote)).toEqual(expected)
    }
  )

  it("fees never have a tip above the price, even if the buffer lowers the price", () => {
    expect(Fees.quote({ nextBaseFee: 5n, tip: 10n }, within(100n), () => 3n)).toEqual(
      Result.succeed({ maxFeePerGas: 3n, maxPriorityFeePerGas: 3n, legacy: false })
    )
  })

  it.each([
    [1n, 30n, { maxFeePerGas: 130n, maxPriorityFeePerGas: 30n, legacy: false }],
    [40n, 30n, { maxFeePerGas: 140n, maxPriorityFeePerGas: 40n, legacy: false }],
    [99n, 30n, { maxFeePerGas: 150n, maxPriorityFeePerGas: 50n, legacy: false }],
    [1n, 51n, new Fees.AboveCap({ needed: 51n, cap: 50n })]
  ])("fees of tip %s, where nodes take %s, are within the tip cap or refused", (tip, least, expected) => {
    const quote = Fees.quote({ nextBaseFee: 100n, tip }, within(1_000n, 50n, least), (price) => price)
    expect(Result.merge(quote)).toEqual(expected)
  })
})

describe("the tip", () => {
  const full = (reward: bigint): Fees.PastBlock => ({ reward, empty: false })
  const empty: Fees.PastBlock = { reward: 0n, empty: true }

  const three = [full(9n), full(1n), full(5n)]
  it.each([
    [three, null, 5n],
    [three, 4n, 5n],
    [three, 6n, 6n],
    [[empty, empty, full(7n), empty], 1n, 7n],
    [[empty, empty], 3n, 3n],
    [[], 3n, 3n],
    [[], null, null],
    [[empty, empty], null, null]
  ])(
    "%#: is the median of the blocks that were not empty, or the suggestion if that is more",
    (past, suggested, tip) => {
      expect(Fees.tipOf(past, suggested)).toBe(tip)
    }
  )

  it("the tip is not moved by fewer than half of the blocks, however high or low their tips are", () => {
    forAll(
      [
        fc.array(fc.bigInt(10n, 20n), { minLength: 5, maxLength: 9 }),
        fc.array(fc.oneof(fc.constant(0n), fc.constant(10n ** 15n)), { maxLength: 4 })
      ],
      (usual, odd) => {
        const tip = Fees.tipOf([...usual, ...odd].map(full), null)
        expect(tip).toBeGreaterThanOrEqual(10n)
        expect(tip).toBeLessThanOrEqual(20n)
      }
    )
  })
})
