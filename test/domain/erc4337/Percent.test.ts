import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import fc from "fast-check"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import { forAll, words } from "../generators.js"

const some = fc.bigInt({ min: 0n, max: 10_000_000n })

describe("a percentage", () => {
  it("a percentage is read exactly, from text and from numbers", () => {
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
      expect(Percent.from(value)).toEqual(Result.succeed(units))
  })

  it("a percentage is only a plain decimal from 0 to 1000 with at most four decimals", () => {
    const bad = words("-1 +1 1e2 0x10 1,5 .5 5. 05 1000.0001 1001 99999 0.00001 ٥ 1_0 NaN Infinity 5%")
    for (const text of ["", " 5", "5 ", "5\n", ...bad])
      expect(Result.isFailure(Percent.from(text)), JSON.stringify(text)).toBe(true)
    for (const number of [-1, 1000.1, 0.00001, 1e-7, 1e21, Number.NaN, Number.POSITIVE_INFINITY, 0.1 + 0.2])
      expect(Result.isFailure(Percent.from(number)), String(number)).toBe(true)
  })

  it("a percentage survives its text form", () => {
    forAll([some], (units) => {
      const percent = Result.getOrThrow(
        Percent.from(`${units / 10_000n}.${(units % 10_000n).toString().padStart(4, "0")}`)
      )
      expect(percent).toBe(units)
      expect(Percent.from(Percent.format(percent))).toEqual(Result.succeed(percent))
      expect(Percent.from(Number(Percent.format(percent)))).toEqual(Result.succeed(percent))
    })
  })

  it("a percentage is formatted as short as possible", () => {
    const texts = [0n, 1n, 500_000n, 505_000n, 10_000_000n].map((units) =>
      Percent.format(units as Percent.Percent)
    )
    expect(texts).toEqual(["0", "0.0001", "50", "50.5", "1000"])
  })

  it("a malformed percentage is refused with the expected form", () => {
    const message = "expected a percentage from 0 to 1000 with at most four decimals"
    for (const value of ["x", 1001]) {
      expect(Percent.from(value)).toMatchObject(Result.fail({ type: "Percent", message }))
      expect(String(Schema.decodeUnknownResult(Percent.schema)(value))).toContain(message)
    }
  })

  it("a percentage is a string of that form or a number in JSON schema", () => {
    expect(Schema.toJsonSchemaDocument(Percent.schema).definitions).toMatchObject({
      Percent: {
        oneOf: [
          { type: "string", pattern: "^(0|[1-9][0-9]{0,3})(\\.[0-9]{1,4})?$" },
          { type: "number", minimum: 0, maximum: 1000 }
        ]
      }
    })
  })

  it("a percentage is a JSON number or text on the wire", () => {
    const decode = Schema.decodeUnknownResult(Percent.schema)
    expect(decode(20)).toEqual(Result.succeed(200_000n))
    expect(decode("20.25")).toEqual(Result.succeed(202_500n))
    for (const bad of [null, true, {}, [], "x", -1]) expect(Result.isFailure(decode(bad))).toBe(true)
    expect(Schema.encodeSync(Percent.schema)(Result.getOrThrow(Percent.from("20.25")))).toBe("20.25")
  })
})
