import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../../../domain/json/Json.js"
import type { Metadata } from "../../ports/journal/Requests.js"

/** The caller's data for its request, as text: `{"order": "4711"}`. */

/** Bytes of the text, number of members, and characters of a key and a value: each member is an index entry. */
export const most = { bytes: 2_048, members: 16, key: 40, value: 500 } as const

export const schema: Schema.Codec<Metadata> = Schema.Record(Schema.String, Schema.String).annotate({
  description: "Labels of the header Request-Metadata; empty: the request had none."
})

/** Databases store neither NUL nor half a surrogate pair in strings. */
const plain = String.raw`[^\p{Cc}\p{Cs}]`
const keyShape = new RegExp(`^[\\w.-]{1,${most.key}}$`)
const valueShape = new RegExp(`^${plain}{1,${most.value}}$`, "u")

/** One member in a search. */
export const memberShape = new RegExp(`^[\\w.-]{1,${most.key}}:${plain}{1,${most.value}}$`, "u")

/** `Failure` says what to write instead, and contains no part of the text. */
export const parse = (text: string): Result.Result<Metadata, string> => {
  if (text.length > most.bytes) return Result.fail(`expected at most ${most.bytes} bytes`)
  if (!/^[\x20-\x7e]*$/.test(text))
    return Result.fail("expected ASCII; write other characters of the JSON as \\uXXXX")
  const read = Result.getOrElse(Json.parse(text, Json.unbounded), () => null)
  if (!Predicate.isObject(read))
    return Result.fail('expected one JSON object of strings, each key once, for example {"order":"4711"}')
  const members = Object.entries(read)
  if (members.length > most.members) return Result.fail(`expected at most ${most.members} members`)
  if (members.some(([key]) => !keyShape.test(key)))
    return Result.fail(`expected keys of 1 to ${most.key} of A-Z a-z 0-9 _ . -`)
  if (members.some(([, value]) => typeof value !== "string" || !valueShape.test(value)))
    return Result.fail(`expected values of 1 to ${most.value} characters, none of them a control character`)
  return Result.succeed(read as Metadata)
}
