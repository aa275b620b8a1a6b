import { describe, expect, it } from "@effect/vitest"
import * as BigInts from "effect/BigInt"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as Fees from "../../../src/domain/op/Fees.js"
import { overshoot } from "../../../src/domain/op/Gas.js"
import * as Percent from "../../../src/domain/op/Percent.js"

const wei = fc.bigInt({ min: 0n, max: 10n ** 14n })
const percent = fc.integer({ min: 0, max: 1000 }).map((value) => Either.getOrThrow(Percent.from(value)))

describe("Fees", () => {
  it("are never above the operator's cap, and cover the next block with the buffer as far as the cap allows", () => {
    fc.assert(
      fc.property(wei, wei, percent, wei, (nextBaseFee, tip, buffer, cap) => {
        const wished = overshoot(nextBaseFee + tip, buffer)
        const quote = Fees.quote({ nextBaseFee, tip, cap, overshoot: (price) => overshoot(price, buffer) })
        if (Either.isLeft(quote)) {
          expect(nextBaseFee + tip).toBeGreaterThan(cap)
          expect(quote.left).toMatchObject({ _tag: "AboveCap", needed: nextBaseFee + tip, cap })
        } else {
          expect(quote.right.maxFeePerGas).toBe(BigInts.min(wished, cap))
          expect(quote.right.maxFeePerGas).toBeGreaterThanOrEqual(nextBaseFee + tip)
          expect(quote.right.maxPriorityFeePerGas).toBe(tip)
        }
      })
    )
  })

  it("are quoted at exactly the cap and refused one wei above it", () => {
    const at = (nextBaseFee: bigint) =>
      Fees.quote({ nextBaseFee, tip: 10n, cap: 100n, overshoot: (x) => x * 2n })
    expect(at(90n)).toEqual(Either.right({ maxFeePerGas: 100n, maxPriorityFeePerGas: 10n }))
    expect(Either.isLeft(at(91n))).toBe(true)
  })

  it("never have a tip above the whole, even if the buffer lowers the price", () => {
    expect(Fees.quote({ nextBaseFee: 5n, tip: 10n, cap: 100n, overshoot: () => 3n })).toEqual(
      Either.right({ maxFeePerGas: 3n, maxPriorityFeePerGas: 3n })
    )
  })
})
