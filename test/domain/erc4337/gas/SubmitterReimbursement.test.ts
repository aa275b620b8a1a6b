import { describe, expect, it } from "@effect/vitest"
import * as BigInts from "effect/BigInt"
import * as fc from "fast-check"
import type { FeePrices } from "../../../../src/domain/erc4337/gas/Fees.js"
import * as SubmitterReimbursement from "../../../../src/domain/erc4337/gas/SubmitterReimbursement.js"
import { forAll } from "../../generators.js"

const wei = fc.bigInt({ min: 0n, max: 10n ** 13n })
const gas = fc.bigInt({ min: 21_000n, max: 30_000_000n })
const fees: fc.Arbitrary<FeePrices> = fc.tuple(wei, wei).map(([a, b]) => ({
  maxFeePerGas: BigInts.max(a, b),
  maxPriorityFeePerGas: BigInts.min(a, b),
  legacy: false
}))

/** Price of a gas unit in a block of that base fee. */
const paid = ({ maxFeePerGas, maxPriorityFeePerGas }: FeePrices, baseFee: bigint): bigint =>
  maxFeePerGas < baseFee + maxPriorityFeePerGas ? maxFeePerGas : baseFee + maxPriorityFeePerGas

describe("the prices of a transaction that its ops pay for", () => {
  it("reimbursed prices are never above what any op pays for a gas unit, at any base fee", () => {
    forAll([fees, fc.array(fees, { maxLength: 8 }), wei], (offered, ops, baseFee) => {
      const own = SubmitterReimbursement.prices(offered, ops)
      for (const op of ops) expect(paid(own, baseFee) <= paid(op, baseFee)).toBe(true)
      expect(own.maxPriorityFeePerGas <= own.maxFeePerGas).toBe(true)
    })
  })

  it("reimbursed prices have no tip above the whole, even where an op's own is", () => {
    const offered = { maxFeePerGas: 100n, maxPriorityFeePerGas: 50n, legacy: false }
    for (const [own, tip] of [
      [30n, 20n],
      [7n, 7n]
    ] as const)
      expect(
        SubmitterReimbursement.prices(offered, [{ maxFeePerGas: 20n, maxPriorityFeePerGas: own }])
      ).toEqual({ maxFeePerGas: 20n, maxPriorityFeePerGas: tip, legacy: false })
  })

  it("reimbursed prices are the offered prices or an op's: never lower than both", () => {
    forAll([fees, fc.array(fees, { maxLength: 8 })], (offered, ops) => {
      const own = SubmitterReimbursement.prices(offered, ops)
      const least = ops.reduce((low, op) => BigInts.min(low, op.maxFeePerGas), offered.maxFeePerGas)
      expect(own.maxFeePerGas).toBe(least)
      expect(own.legacy).toBe(offered.legacy)
    })
  })
})

describe("a transaction is paid for", () => {
  it("a transaction is paid for when its ops refund its cost; a refused one lacks at most the margin", () => {
    forAll([gas, gas, wei, wei], (used, charged, gasPrice, l1Fee) => {
      const [income, cost] = [charged * gasPrice, used * gasPrice + l1Fee]
      const covered = SubmitterReimbursement.covers({ used, charged }, { gasPrice, l1Fee })
      if (covered) expect(income >= cost).toBe(true)
      else expect(income * 100n < cost * (100n + SubmitterReimbursement.marginPercent)).toBe(true)
    })
  })

  it("a transaction is paid for when an op is charged the margin of its limits on top", () => {
    forAll([gas, fc.bigInt({ min: 0n, max: 10n ** 7n }), wei], (used, unused, gasPrice) => {
      const charged = used + SubmitterReimbursement.margin(used + unused)
      expect(SubmitterReimbursement.covers({ used, charged }, { gasPrice, l1Fee: 0n })).toBe(true)
    })
  })

  it("the margin of a reimbursement is a hundredth, rounded up", () => {
    expect([0n, 1n, 100n, 101n, 10_000n].map(SubmitterReimbursement.margin)).toEqual([0n, 1n, 1n, 2n, 100n])
  })

  it.each([
    ["exactly with the margin", 101_000n, 1n, 0n, true],
    ["a unit below it", 100_999n, 1n, 0n, false],
    ["nothing for layer 1", 101_000n, 1n, 1n, false],
    ["nothing at all", 0n, 10n, 0n, false]
  ] as const)("or not: %s", (_, charged, gasPrice, l1Fee, covered) => {
    expect(SubmitterReimbursement.covers({ used: 100_000n, charged }, { gasPrice, l1Fee })).toBe(covered)
  })
})
