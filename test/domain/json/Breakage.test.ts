import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Breakage from "../../../src/domain/json/Breakage.js"
import { forAll } from "../generators.js"

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe("where text stops to be JSON", () => {
  it.each([
    ["", ": it ends too early, line 1, column 1"],
    ["{", ": it ends too early, line 1, column 2"],
    ['{"a":1}{}', ": line 1, column 8"],
    ["{'a':1}", ": line 1, column 2"],
    ['{"a":1,}', ": line 1, column 8"],
    ['{"a":1,\n  "b": tru}', ": line 2, column 11"],
    ['{\r\n\t"a" 1}', ": line 2, column 6"],
    ["[1,]", ": line 1, column 4"],
    ["[1 2]", ": line 1, column 4"],
    ["[01]", ": line 1, column 3"],
    ["[-]", ": line 1, column 3"],
    ["[+1]", ": line 1, column 2"],
    ["[1.]", ": line 1, column 3"],
    ["NaN", ": line 1, column 1"],
    ["nul", ": it ends too early, line 1, column 4"],
    ["[0x0e5]", ": line 1, column 3"],
    ['{"a":"\u0001"}', ": line 1, column 7"],
    ['["\\x"]', ": line 1, column 3"],
    ['["a\\', ": it ends too early, line 1, column 5"],
    ['["a', ": it ends too early, line 1, column 4"],
    ["{]", ": line 1, column 2"],
    ["[}", ": line 1, column 2"],
    ["1 // one", ": line 1, column 3"],
    ['\ufeff{"a":1}', ": it begins with a byte order mark"],
    ["[".repeat(200_000), ": it ends too early, line 1, column 200001"]
  ])("%#", (text, where) => {
    expect(Breakage.describeIn(text)).toBe(where)
  })

  it("valid JSON has no breakage; other text has the place up to which it can continue as JSON", () => {
    const change = fc.tuple(
      fc.json(),
      fc.nat(),
      fc.nat({ max: 2 }),
      fc.constantFrom(..."{}[]:,\"'\\ 0-.e1tn\n\u0000")
    )
    forAll([fc.oneof(fc.json(), fc.string())], (text) => (Breakage.describeIn(text) === "") === isJson(text))
    forAll(
      [change],
      ([json, at, removed, added]) => {
        const place = at % (json.length + 1)
        const text = json.slice(0, place) + added + json.slice(place + removed)
        const where = Breakage.describeIn(text)
        expect(where === "").toBe(isJson(text))
        const [, line, column] = /line (\d+), column (\d+)$/.exec(where) ?? []
        if (line === undefined) return
        const lines = text.split("\n")
        const index =
          lines.slice(0, Number(line) - 1).join("\n").length + (line === "1" ? 0 : 1) + Number(column) - 1
        expect(index).toBeLessThanOrEqual(text.length)
        expect(where.includes("ends too early")).toBe(index === text.length)
      },
      { numRuns: 3_000 }
    )
  })
})
