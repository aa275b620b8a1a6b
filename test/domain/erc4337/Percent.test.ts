import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as JSONSchema from "effect/JSONSchema"
import * as Schema from "effect/Schema"
import fc from "fast-check"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import { words } from "../generators.js"

const some = fc.bigInt({ min: 0n, max: 10_000_000n })

describe("a percentage", () => {
  it("is read exactly, from text and from numbers", () => {
    for (const [value, units] of [
      ["50", 500_000n],
      [50, 500_000n],
      ["0.0001", 1n],
      [0.1, 1_000n],
      [0.3, 3_000n],
      ["12.5000", 125_000n],
      [1000, 10_000_000n],
      [-0, 0n]
    ] as const)
      expect(Percent.from(value)).toEqual(Either.right(units))
  })

  it("is nothing else than a plain decimal from 0 to 1000 with at most four decimals", () => {
    const bad = words("-1 +1 1e2 0x10 1,5 .5 5. 05 1000.0001 1001 99999 0.00001 ٥ 1_0 NaN Infinity 5%")
    for (const text of ["", " 5", "5 ", "5\n", ...bad])
      expect(Either.isLeft(Percent.from(text)), JSON.stringify(text)).toBe(true)
    for (const number of [-1, 1000.1, 0.00001, 1e-7, 1e21, Number.NaN, Number.POSITIVE_INFINITY, 0.1 + 0.2])
      expect(Either.isLeft(Percent.from(number)), String(number)).toBe(true)
  })

  it.prop("survives its text form", [some], ([units]) => {
    const percent = Either.getOrThrow(
      Percent.from(`${units / 10_000n}.${(units % 10_000n).toString().padStart(4, "0")}`)
    )
    expect(percent).toBe(units)
    expect(Percent.from(Percent.format(percent))).toEqual(Either.right(percent))
    expect(Percent.from(Number(Percent.format(percent)))).toEqual(Either.right(percent))
  })

  it("is told as short as it can be", () => {
    const texts = [0n, 1n, 500_000n, 505_000n, 10_000_000n].map((units) =>
      Percent.format(units as Percent.Percent)
    )
    expect(texts).toEqual(["0", "0.0001", "50", "50.5", "1000"])
  })

  it("that is none is told what one is", () => {
    const message = "expected a percentage from 0 to 1000 with at most four decimals"
    for (const value of ["x", 1001]) {
      expect(Percent.from(value)).toMatchObject(Either.left({ type: "Percent", message }))
      expect(String(Schema.decodeUnknownEither(Percent.schema)(value))).toContain(message)
    }
  })

  it("is in a JSON schema a number, or text of that shape", () => {
    expect(JSONSchema.make(Percent.schema).$defs).toMatchObject({
      Percent: {
        oneOf: [
          { type: "number", minimum: 0, maximum: 1000 },
          { type: "string", pattern: "^(0|[1-9][0-9]{0,3})(\\.[0-9]{1,4})?$" }
        ]
      }
    })
  })

  it("is a JSON number or text on the wire", () => {
    const decode = Schema.decodeUnknownEither(Percent.schema)
    expect(decode(20)).toEqual(Either.right(200_000n))
    expect(decode("20.25")).toEqual(Either.right(202_500n))
    for (const bad of [null, true, {}, [], "x", -1]) expect(Either.isLeft(decode(bad))).toBe(true)
    expect(Schema.encodeSync(Percent.schema)(Either.getOrThrow(Percent.from("20.25")))).toBe("20.25")
  })
})
