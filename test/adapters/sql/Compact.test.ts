import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Compact from "../../../src/adapters/sql/Compact.js"

describe("columns of hex and JSON", () => {
  it("are read as they were written, whatever their length", () => {
    const hex = fc.string({ unit: fc.constantFrom("0", "0", "0", "a", "7"), maxLength: 2_000 })
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          hex.map((digits) => `0x${digits}`)
        ),
        (text) => {
          const column = Compact.write(text)
          expect(column.length).toBeLessThanOrEqual(text.length)
          expect(Compact.read(column)).toBe(text)
        }
      )
    )
    for (const length of [127, 128, 65_536, 65_537, 1_000_000]) {
      const text = `"${"ж".repeat(length - 2)}"`
      expect(Compact.read(Compact.write(text))).toBe(text)
    }
  })

  it("that repeat themselves take less room", () => {
    const receipt = JSON.stringify(
      Array.from({ length: 20 }, (_, n) => ({ index: n, topics: ["0x".padEnd(66, "0")] }))
    )
    expect(Compact.write(receipt).length).toBeLessThan(receipt.length / 5)
  })
})
