import * as Data from "effect/Data"
import * as Result from "effect/Result"

/**
 * A value that does not fit its type. `message` says what is expected. It quotes the beginning of the value only where
 * an integer is expected, see `given`: the value may be a misplaced secret.
 */
export class InvalidValue extends Data.TaggedError("InvalidValue")<{
  readonly type: "Address" | "Bytes32" | "CreationCode" | "Custody" | "Hex" | "Percent" | "Salt" | "Uint"
  readonly message: string
}> {}

/** Longest text that is quoted whole, and the quoted length of a longer one, which may be a secret; in characters. */
const quoted = { whole: 24, beginning: 8 }

/**
 * A given text, as far as it may be repeated, and its first character outside printable ASCII.
 *
 * @example InvalidValue.quote("1,5")
 * // "\"1,5\""
 */
export const quote = (text: string): string => {
  const isWhole = text.length <= quoted.whole
  const characters = [...text.slice(0, quoted.whole)].slice(0, isWhole ? quoted.whole : quoted.beginning)
  const length = isWhole ? "" : ` (the first ${quoted.beginning} of ${text.length} characters)`
  const odd = characters.find((each) => !/[ -~]/.test(each))
  const point = odd?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")
  const which = odd === undefined ? "" : `, with the character U+${point}${dash.test(odd) ? ' for "-"' : ""}`
  return `${JSON.stringify(characters.join(""))}${length}${which}`
}

/** Hyphens, dashes and minus signs other than the keyboard's. */
const dash = /[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/

/**
 * The kind of the given value, where the value may not be repeated.
 *
 * @example InvalidValue.kindOf([1])
 * // "an array"
 */
export const kindOf = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (value === null) return "null"
  if (Array.isArray(value)) return "an array"
  if (typeof value === "object") return "an object"
  return `a ${typeof value}`
}

/**
 * The given value, where an integer is expected.
 *
 * @example InvalidValue.quoteInteger(null)
 * // "null"
 */
export const quoteInteger = (value: unknown): string => {
  if (typeof value === "string") return quote(value)
  return typeof value === "number" || typeof value === "bigint" ? String(value) : kindOf(value)
}

/**
 * Keeps only the message, for failures that name the value themselves.
 *
 * @example InvalidValue.toText(Hex.from("0xabc"))
 * // Result.fail("expected 0x and an even number of hex digits")
 */
export const toText = <A>(result: Result.Result<A, InvalidValue>): Result.Result<A, string> =>
  Result.mapError(result, ({ message }) => message)
