import { describe, expect, it } from "@effect/vitest"
import * as Pauses from "../../../../../src/application/lanes/worker/rules/Pauses.js"

const untilAfter = (times: number): number => {
  let pauses: Pauses.Pauses<string> = Pauses.none()
  for (let n = 0; n < times; n += 1) pauses = Pauses.pause(pauses, ["op"], "the node is silent", 0)
  return pauses.get("op")?.until ?? 0
}

describe("pauses", () => {
  it("double from 100 ms to 30 s", () => {
    expect([1, 2, 3, 9, 10, 50].map(untilAfter)).toEqual([100, 200, 400, 25_600, 30_000, 30_000])
  })

  it("end independently, each at its time", () => {
    const first = Pauses.pause(Pauses.none(), ["a"], "no money", 0)
    const both = Pauses.pause(first, ["b"], "no money", 50)
    expect(Pauses.nextEnd(both, 0)).toBe(100)
    expect([
      Pauses.isPaused(both, "a", 99),
      Pauses.isPaused(both, "a", 100),
      Pauses.isPaused(both, "b", 100)
    ]).toEqual([true, false, true])
    expect(Pauses.nextEnd(both, 100)).toBe(150)
    expect(Pauses.nextEnd(both, 150)).toBe(null)
  })

  it("are short again after the obstacle has gone", () => {
    const long = Pauses.pause(Pauses.pause(Pauses.none(), ["a"], "x", 0), ["a"], "x", 0)
    const gone = Pauses.end(long, ["a"])
    expect(Pauses.isPaused(gone, "a", 0)).toBe(false)
    expect(Pauses.pause(gone, ["a"], "x", 0).get("a")?.until).toBe(100)
  })

  it("stay the same if no pause ends", () => {
    const pauses = Pauses.pause(Pauses.none(), ["a"], "x", 0)
    expect(Pauses.end(pauses, ["b"])).toBe(pauses)
  })
})
