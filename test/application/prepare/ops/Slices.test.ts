import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Slices from "../../../../src/application/prepare/ops/Slices.js"
import * as Make from "../../../support/journal/Make.js"

const walletsOf = (numbers: ReadonlyArray<number>) => (index: number) => Make.address(numbers[index] ?? 0)
const of = (wallets: ReadonlyArray<number>, dependencies: ReadonlyArray<number | null>, size: number) =>
  Slices.of(
    dependencies,
    wallets.map((_, index) => index),
    walletsOf(wallets),
    size
  )
const free = (count: number) => Array.from({ length: count }, () => null)

describe("the slices of a request", () => {
  it("keep the operations of a wallet together and in their order", () => {
    expect(of([1, 2, 1, 2, 1, 2], free(6), 3)).toEqual([
      [0, 2, 4],
      [1, 3, 5]
    ])
    expect(of([1, 2, 1, 2, 1, 2], free(6), 4)).toEqual([
      [0, 1, 2, 4],
      [3, 5]
    ])
  })

  it("keep dependent operations in one slice, however large", () => {
    expect(of([1, 2, 3, 4], [null, 3, null, null], 1)).toEqual([[0], [1, 3], [2]])
    expect(of([1, 1, 1, 1], [null, 0, 1, 2], 2)).toEqual([[0, 1, 2, 3]])
  })

  it("hold each operation once, in at most the requested number of slices when operations are independent", () => {
    const wallets = fc.array(fc.nat(5), { maxLength: 60 })
    fc.assert(
      fc.property(wallets, fc.integer({ min: 1, max: 20 }), (numbers, size) => {
        const slices = of(numbers, free(numbers.length), size)
        expect(slices.flat().sort((a, b) => a - b)).toEqual(numbers.map((_, index) => index))
        for (const slice of slices) expect(slice.length).toBeLessThanOrEqual(size)
        expect(slices.length).toBe(Math.ceil(numbers.length / size))
      })
    )
  })
})
