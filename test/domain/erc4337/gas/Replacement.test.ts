import { describe, expect, it } from "@effect/vitest"
import * as BigInts from "effect/BigInt"
import * as Result from "effect/Result"
import fc from "fast-check"
import * as Replacement from "../../../../src/domain/erc4337/gas/Replacement.js"
import { forAll } from "../../generators.js"

const price = fc.bigInt({ min: 0n, max: 2n ** 96n })
const prices = fc
  .record({ maxFeePerGas: price, maxPriorityFeePerGas: price })
  .map(({ maxFeePerGas, maxPriorityFeePerGas }) => ({
    maxFeePerGas,
    maxPriorityFeePerGas: BigInts.min(maxPriorityFeePerGas, maxFeePerGas)
  }))
const quote = fc.option(
  fc.record({ prices, legacy: fc.boolean() }).map(({ prices, legacy }) => ({ ...prices, legacy }))
)
const options = fc.record({ highest: prices, quote, legacy: fc.boolean(), caps: prices })
const unbounded = { maxFeePerGas: 2n ** 200n, maxPriorityFeePerGas: 2n ** 200n }

/** What Geth and its kin ask of a replacement: at least a tenth more, in both prices. */
const isTaken = (raised: bigint, before: bigint) => raised * 100n >= before * 110n && raised > before

describe("the prices of a replacement", () => {
  it("replacement prices are both a tenth above the highest, and not below what the chain asks for", () => {
    forAll([options], (given) => {
      const { highest, quote } = given
      const found = Result.getOrThrow(Replacement.prices({ ...given, caps: unbounded }))
      expect(isTaken(found.maxFeePerGas, highest.maxFeePerGas)).toBe(true)
      expect(isTaken(found.maxPriorityFeePerGas, highest.maxPriorityFeePerGas)).toBe(true)
      expect(found.maxFeePerGas >= (quote?.maxFeePerGas ?? 0n)).toBe(true)
      expect(found.maxPriorityFeePerGas >= (quote?.maxPriorityFeePerGas ?? 0n)).toBe(true)
      expect(found.maxPriorityFeePerGas <= found.maxFeePerGas).toBe(true)
    })
  })

  it("replacement prices are the lowest that nodes take", () => {
    forAll([options], (given) => {
      const { highest, legacy } = given
      const found = Result.getOrThrow(Replacement.prices({ ...given, quote: null, caps: unbounded }))
      expect(isTaken(found.maxFeePerGas - 1n, highest.maxFeePerGas)).toBe(false)
      if (!legacy) expect(isTaken(found.maxPriorityFeePerGas - 1n, highest.maxPriorityFeePerGas)).toBe(false)
    })
  })

  it("replacement prices never exceed a cap; the refusal states the needed price", () => {
    forAll([options], (given) => {
      const { caps, legacy } = given
      Result.match(Replacement.prices(given), {
        onFailure: ({ cap, needed }) => {
          expect(needed > cap).toBe(true)
          expect([caps.maxFeePerGas, caps.maxPriorityFeePerGas]).toContain(cap)
        },
        onSuccess: (found) => {
          expect(found.maxFeePerGas <= caps.maxFeePerGas).toBe(true)
          if (!legacy) expect(found.maxPriorityFeePerGas <= caps.maxPriorityFeePerGas).toBe(true)
        }
      })
    })
  })

  it.each([
    [100n, 10n, { maxFeePerGas: 110n, maxPriorityFeePerGas: 11n }],
    [0n, 0n, { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }]
  ])("replacements of %s and %s may reach the caps", (maxFeePerGas, maxPriorityFeePerGas, caps) => {
    const highest = { maxFeePerGas, maxPriorityFeePerGas }
    expect(Replacement.prices({ highest, quote: null, legacy: false, caps })).toEqual(
      Result.succeed({ ...caps, legacy: false })
    )
  })

  it("replacement prices of type 0 are equal, and the type is kept", () => {
    forAll([options], (given) => {
      const found = Result.getOrThrow(Replacement.prices({ ...given, caps: unbounded }))
      expect(found.legacy).toBe(given.legacy)
      if (given.legacy) expect(found.maxPriorityFeePerGas).toBe(found.maxFeePerGas)
    })
  })

  it("replacement prices reach any cap in a bounded number of steps", () => {
    let highest = { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }
    const caps = { maxFeePerGas: 500_000_000_000n, maxPriorityFeePerGas: 500_000_000_000n }
    for (let step = 0; ; step += 1) {
      const next = Replacement.prices({ highest, quote: null, legacy: false, caps })
      if (Result.isFailure(next)) break
      highest = next.success
      expect(step).toBeLessThan(320)
    }
    expect(highest.maxFeePerGas * 11n > caps.maxFeePerGas * 10n).toBe(true)
  })
})
