import { describe, expect, test } from "vitest"
import * as Series from "../../../src/application/operate/Series.js"

const sample = (over: Partial<Series.Sample>): Series.Sample => ({
  at: 0,
  succeeded: 0,
  failed: 0,
  inclusion: [],
  gas: new Map(),
  ...over
})

describe("series", () => {
  test("a percentile lies between the bounds of its bucket, and counts only the latest period", () => {
    const before = sample({
      inclusion: [
        [1, 100],
        [2, 100],
        [Number.POSITIVE_INFINITY, 100]
      ]
    })
    const after = sample({
      inclusion: [
        [1, 100],
        [2, 110],
        [Number.POSITIVE_INFINITY, 110]
      ]
    })
    expect(Series.percentile(before, after, 0.5)).toBe(1.5)
    expect(Series.percentile(before, before, 0.5)).toBeNull()
    const slow = sample({
      inclusion: [
        [1, 100],
        [2, 100],
        [Number.POSITIVE_INFINITY, 101]
      ]
    })
    // Longer than the last bound: at least that.
    expect(Series.percentile(before, slow, 0.99)).toBe(2)
  })

  test("reports gas per day after ten minutes of measurement", () => {
    const spent = (at: number, wei: number) => sample({ at, gas: new Map([["1 0xa", wei]]) })
    expect(Series.dailyGas([spent(0, 5), spent(599_999, 15)], 1n, "0xa")).toBeNull()
    expect(Series.dailyGas([spent(0, 5), spent(8_640_000, 15)], 1n, "0xa")).toBe(100)
    expect(Series.dailyGas([spent(0, 5), spent(8_640_000, 15)], 1n, "0xb")).toBeNull()
  })

  test("steps are the amounts added between samples", () => {
    const counts = [0, 3, 3, 10].map((succeeded) => sample({ succeeded }))
    expect(Series.steps(counts, (before, after) => after.succeeded - before.succeeded)).toEqual([3, 0, 7])
  })
})
