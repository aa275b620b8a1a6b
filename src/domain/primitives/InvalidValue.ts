import * as Data from "effect/Data"
import * as Result from "effect/Result"

/**
 * What was given is no value of the type. `message` says what is expected. Only where an integer is expected it quotes
 * the beginning of what was given, see `given`: it may be a secret in the wrong place.
 */
export class InvalidValue extends Data.TaggedError("InvalidValue")<{
  readonly type: "Address" | "Bytes32" | "CreationCode" | "Custody" | "Hex" | "Percent" | "Salt" | "Uint"
  readonly message: string
}> {}

/** Longest text that is quoted whole, and how much is quoted of a longer one, which may be a secret; in characters. */
const quoted = { whole: 24, beginning: 8 }

/** A given text, so far as it may be repeated, and the first character of it that is not what it looks like. */
export const given = (text: string): string => {
  const isWhole = text.length <= quoted.whole
  const characters = [...text.slice(0, quoted.whole)].slice(0, isWhole ? quoted.whole : quoted.beginning)
  const length = isWhole ? "" : ` (the first ${quoted.beginning} of ${text.length} characters)`
  const odd = characters.find((each) => !/[ -~]/.test(each))
  const point = odd?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")
  const which = odd === undefined ? "" : `, with the character U+${point}${dash.test(odd) ? ' for "-"' : ""}`
  return `${JSON.stringify(characters.join(""))}${length}${which}`
}

/** Hyphens, dashes and minus signs beside the one on keyboards. */
const dash = /[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/

/** What kind of value was given, where it may not be repeated. */
export const kindOf = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (value === null) return "null"
  if (Array.isArray(value)) return "an array"
  if (typeof value === "object") return "an object"
  return `a ${typeof value}`
}

/** What was given where an integer is expected. */
export const givenInteger = (value: unknown): string => {
  if (typeof value === "string") return given(value)
  return typeof value === "number" || typeof value === "bigint" ? String(value) : kindOf(value)
}

/** The same with the message alone, for failures that name the value themselves. */
export const toText = <A>(result: Result.Result<A, InvalidValue>): Result.Result<A, string> =>
  Result.mapError(result, ({ message }) => message)
