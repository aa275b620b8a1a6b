import type * as Brand from "effect/Brand"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidValue } from "../primitives/InvalidValue.js"
import * as Wire from "../primitives/Wire.js"

/** A percentage from 0 to 1000 with at most four decimals, as an integer of 1e-4 percent: 50 % is 500000n. */
export type Percent = bigint & Brand.Brand<"Percent">

/** Units of a `Percent` in the whole, that is in 100 %. */
export const whole = 1_000_000n

const shape = /^(0|[1-9][0-9]{0,3})(?:\.([0-9]{1,4}))?$/

const invalid = new InvalidValue({
  type: "Percent",
  message: "expected a percentage from 0 to 1000 with at most four decimals"
})

/**
 * Decimal text or a JSON number to a percentage, exactly: a number is read by its shortest decimal text, never
 * multiplied. `Failure` says why not.
 *
 * @example Result.getOrThrow(Percent.from("12.5"))
 * // 125000n
 */
export const from = (value: string | number): Result.Result<Percent, InvalidValue> => {
  const parts = shape.exec(String(value))
  if (parts === null) return Result.fail(invalid)
  const [, units = "0", decimals = ""] = parts
  const percent = BigInt(units) * 10_000n + BigInt(decimals.padEnd(4, "0"))
  return percent <= 10_000_000n ? Result.succeed(percent as Percent) : Result.fail(invalid)
}

/**
 * Shortest decimal text, so that `from(format(p))` is `p`.
 *
 * @example Percent.format(Result.getOrThrow(Percent.from(50)))
 * // "50"
 */
export const format = (percent: Percent): string => {
  const decimals = (percent % 10_000n).toString().padStart(4, "0").replace(/0+$/, "")
  return decimals === "" ? `${percent / 10_000n}` : `${percent / 10_000n}.${decimals}`
}

/** 0 %. */
export const zero = 0n as Percent

/** Wire codec: a JSON number or decimal text in, decimal text out. */
export const schema: Schema.Codec<Percent, string | number> = Wire.codec(
  Schema.Union(
    [
      Wire.shown(Schema.String, { pattern: "^(0|[1-9][0-9]{0,3})(\\.[0-9]{1,4})?$" }),
      Wire.shown(Schema.Finite, { minimum: 0, maximum: 1000 })
    ],
    { mode: "oneOf" }
  ).annotate({ identifier: "Percent" }),
  Schema.toType(Schema.BigInt.pipe(Schema.brand("Percent"))),
  from,
  format
)
