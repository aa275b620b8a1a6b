import { describe, expect, it } from "@effect/vitest"
import * as BigInts from "effect/BigInt"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as Fees from "../../../../src/domain/erc4337/gas/Fees.js"
import { overshoot } from "../../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../../src/domain/erc4337/Percent.js"

const wei = fc.bigInt({ min: 0n, max: 10n ** 14n })
const percent = fc.integer({ min: 0, max: 1000 }).map((value) => Either.getOrThrow(Percent.from(value)))
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
  it.prop(
    "are never above the operator's caps, and cover the next block with the buffer as far as the cap allows",
    [wei, wei, percent, bounds],
    ([nextBaseFee, asked, buffer, caps]) => {
      const { maxFeePerGas: cap, maxPriorityFeePerGas: tipCap, minPriorityFeePerGas: least } = caps
      const quote = Fees.quote({ nextBaseFee, tip: asked }, caps, (price) => overshoot(price, buffer))
      const tip = BigInts.max(BigInts.min(asked, tipCap), least)
      if (Either.isLeft(quote)) {
        expect(least > tipCap || nextBaseFee + tip > cap).toBe(true)
        expect(quote.left._tag).toBe("AboveCap")
        expect(quote.left.needed).toBeGreaterThan(quote.left.cap)
        return
      }
      const { legacy, maxFeePerGas, maxPriorityFeePerGas } = quote.right
      expect(legacy).toBe(false)
      expect(maxFeePerGas).toBe(BigInts.min(overshoot(nextBaseFee + tip, buffer), cap))
      expect(maxFeePerGas).toBeGreaterThanOrEqual(nextBaseFee + tip)
      expect(maxFeePerGas).toBeLessThanOrEqual(cap)
      expect(maxPriorityFeePerGas).toBe(tip)
      expect(maxPriorityFeePerGas).toBeGreaterThanOrEqual(least)
      expect(maxPriorityFeePerGas).toBeLessThanOrEqual(tipCap)
    }
  )

  it.prop(
    "are one gas price without a base fee: at least the least one, never above the cap, whatever tips may be",
    [wei, percent, bounds],
    ([gasPrice, buffer, caps]) => {
      const needed = BigInts.max(gasPrice, caps.minPriorityFeePerGas)
      const quote = Fees.quote({ nextBaseFee: null, tip: gasPrice }, caps, (price) =>
        overshoot(price, buffer)
      )
      if (needed > caps.maxFeePerGas) {
        expect(quote).toEqual(Either.left(new Fees.AboveCap({ needed, cap: caps.maxFeePerGas })))
        return
      }
      const price = BigInts.min(overshoot(needed, buffer), caps.maxFeePerGas)
      expect(quote).toEqual(Either.right({ maxFeePerGas: price, maxPriorityFeePerGas: price, legacy: true }))
    }
  )

  it("are quoted at exactly the cap and refused one wei above it", () => {
    const at = (nextBaseFee: bigint) =>
      Fees.quote({ nextBaseFee, tip: 10n }, within(100n), (price) => price * 2n)
    expect(at(90n)).toEqual(Either.right({ maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false }))
    expect(at(91n)).toEqual(Either.left(new Fees.AboveCap({ needed: 101n, cap: 100n })))
    const legacy = (gasPrice: bigint) =>
      Fees.quote({ nextBaseFee: null, tip: gasPrice }, within(100n), (price) => price * 2n)
    expect(legacy(100n)).toEqual(
      Either.right({ maxFeePerGas: 100n, maxPriorityFeePerGas: 100n, legacy: true })
    )
    expect(legacy(101n)).toEqual(Either.left(new Fees.AboveCap({ needed: 101n, cap: 100n })))
  })

  it("never have a tip above the whole, even if the buffer lowers the price", () => {
    expect(Fees.quote({ nextBaseFee: 5n, tip: 10n }, within(100n), () => 3n)).toEqual(
      Either.right({ maxFeePerGas: 3n, maxPriorityFeePerGas: 3n, legacy: false })
    )
  })

  it("give at least the tip that the chain's nodes take, and are refused where that is above the cap on tips", () => {
    const asked = (tip: bigint, least: bigint) =>
      Fees.quote({ nextBaseFee: 100n, tip }, within(1_000n, 50n, least), (price) => price)
    expect(asked(1n, 30n)).toEqual(
      Either.right({ maxFeePerGas: 130n, maxPriorityFeePerGas: 30n, legacy: false })
    )
    expect(asked(40n, 30n)).toEqual(
      Either.right({ maxFeePerGas: 140n, maxPriorityFeePerGas: 40n, legacy: false })
    )
    expect(asked(99n, 30n)).toEqual(
      Either.right({ maxFeePerGas: 150n, maxPriorityFeePerGas: 50n, legacy: false })
    )
    expect(asked(1n, 51n)).toEqual(Either.left(new Fees.AboveCap({ needed: 51n, cap: 50n })))
  })
})

describe("the tip", () => {
  const full = (reward: bigint): Fees.PastBlock => ({ reward, empty: false })
  const empty: Fees.PastBlock = { reward: 0n, empty: true }

  it("is the median of the blocks that were not empty, or the suggestion if that is more", () => {
    expect(Fees.tipOf([full(9n), full(1n), full(5n)], null)).toBe(5n)
    expect(Fees.tipOf([full(9n), full(1n), full(5n)], 4n)).toBe(5n)
    expect(Fees.tipOf([full(9n), full(1n), full(5n)], 6n)).toBe(6n)
    expect(Fees.tipOf([empty, empty, full(7n), empty], 1n)).toBe(7n)
    expect(Fees.tipOf([empty, empty], 3n)).toBe(3n)
    expect(Fees.tipOf([], 3n)).toBe(3n)
  })

  it("is none when nobody says anything", () => {
    expect(Fees.tipOf([], null)).toBeNull()
    expect(Fees.tipOf([empty, empty], null)).toBeNull()
  })

  it.prop(
    "is not moved by fewer than half of the blocks, however high or low their tips are",
    [
      fc.array(fc.bigInt(10n, 20n), { minLength: 5, maxLength: 9 }),
      fc.array(fc.oneof(fc.constant(0n), fc.constant(10n ** 15n)), { maxLength: 4 })
    ],
    ([usual, odd]) => {
      const tip = Fees.tipOf([...usual, ...odd].map(full), null)
      expect(tip).toBeGreaterThanOrEqual(10n)
      expect(tip).toBeLessThanOrEqual(20n)
    }
  )
})
