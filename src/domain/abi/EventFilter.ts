import * as Data from "effect/Data"
import * as Result from "effect/Result"
import type { RawLog } from "../evm/RawLog.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import type { EventDefinition } from "./Event.js"
import * as Log from "./Log.js"
import * as Parameter from "./Parameter.js"
import * as Parameters from "./Parameters.js"
import * as Values from "./Values.js"

/**
 * Conditions on the parameters of one event. A condition is one value or a list of alternatives; the list is always the
 * outermost array. `Parameters` defines the spelling of values; one value of an array type is JSON text or an array
 * inside the list: `"[1,2]"`, `[["1","2"]]`. Booleans and safe integers may be written plainly.
 */
export interface EventFilter {
  readonly definition: EventDefinition
  /** By position, for `eth_getLogs`; null matches anything. Leaves out conditions that topics cannot express. */
  readonly topics: ReadonlyArray<null | ReadonlyArray<Hex.Bytes32>>
  /**
   * The decoded log when it is this event, by topics, layout and data, and meets all conditions; otherwise null. A log that
   * exceeds the limit of decoded values, by itself or with the logs before it, comes back raw: it may match. The logs
   * before it are this filter's, or all logs under the same allowance.
   */
  readonly match: (log: RawLog, allowance?: Values.Allowance) => Log.DecodedLog | null
  /** Matches a log without its data. With a condition on the data: null, or the log when it `may` match. */
  readonly matchTopics: (log: RawLog, may?: "may") => Log.DecodedLog | null
}

/** Values that one parameter may be given. */
export const maxValues = 256

/** Words of 32 bytes that the values of all parameters take up together. */
export const maxWords = 8_192

/** Values that all logs of one query are decoded to. */
export const maxValuesInAll = 262_144

const isReference = (type: Parameter.Type): boolean =>
  type.kind === "array" || type.kind === "tuple" || type.dynamic

const wordAt = (digits: string, at: number): string => digits.slice(2 * at, 2 * at + 64)
const numberAt = (digits: string, at: number): number => Number(`0x${wordAt(digits, at)}`)

/** The value whose head is at `head`, in a sequence whose offsets count from `start`. */
const memberInPlace = (type: Parameter.Type, digits: string, start: number, head: number): string =>
  inPlace(type, digits, type.dynamic ? start + numberAt(digits, head) : head)

const contents = (digits: string, at: number): string =>
  digits.slice(2 * (at + 32), 2 * (at + 32 + numberAt(digits, at)))

/**
 * Solidity's in-place encoding, whose hash is the topic of an indexed reference type: all values one after another, each
 * padded to words, without offsets and lengths. `digits` is our own encoding, so every offset in it is right.
 */
const inPlace = (type: Parameter.Type, digits: string, at: number): string => {
  switch (type.kind) {
    case "bytes":
    case "string": {
      const bytes = contents(digits, at)
      return bytes.padEnd(Math.ceil(bytes.length / 64) * 64, "0")
    }
    case "array": {
      const length = type.length ?? numberAt(digits, at)
      const start = type.length === null ? at + 32 : at
      const step = 32 * type.element.words
      return Array.from({ length }, (_, i) =>
        memberInPlace(type.element, digits, start, start + i * step)
      ).join("")
    }
    case "tuple": {
      let head = at
      return type.components
        .map(({ base }) => {
          const member = memberInPlace(base, digits, at, head)
          head += 32 * base.words
          return member
        })
        .join("")
    }
    default:
      return wordAt(digits, at)
  }
}

const encode = (
  parameter: Parameter.Parameter,
  value: unknown
): Result.Result<Hex.Hex, Parameters.InvalidParameters> => {
  // The encoder takes plain numbers and booleans only inside another value.
  const plain = typeof value === "number" || typeof value === "boolean"
  const wrapper = plain ? Parameter.arrayOf(parameter.base, 1) : ""
  return typeof wrapper === "string"
    ? Parameters.encode([parameter], [value], Parameters.maxValues)
    : Parameters.encode([Parameter.make("", wrapper)], [[value]], Parameters.maxValues)
}

/** The topic of an ABI-encoded value. */
const topicOf = ({ base }: Parameter.Parameter, encoded: Hex.Hex): Hex.Bytes32 => {
  if (!isReference(base)) return Hex.unsafe32(encoded)
  const digits = encoded.slice(2)
  const at = base.dynamic ? 32 : 0
  const elementary = base.kind === "bytes" || base.kind === "string"
  const hashed = Hex.unsafe(`0x${elementary ? contents(digits, at) : inPlace(base, digits, at)}`)
  return Keccak.hash(hashed)
}

/** Comparison key, equal for equal values, decoded or wanted. */
const keyOf = (value: Values.Json): string => JSON.stringify(value)

const whyOf = ({ message }: Parameters.InvalidParameters, given: unknown): string => {
  const why = message.replace(/^[^:]*: /, "")
  return typeof given === "string" ? why : why.replace(/^element 0: (?=a JSON number|expected a string)/, "")
}

interface Condition {
  readonly index: number
  readonly parameter: Parameter.Parameter
  readonly encoded: ReadonlyArray<Hex.Hex>
}

const condition = (
  { inputs, name: eventName }: EventDefinition,
  name: string,
  given: unknown,
  words: Values.Allowance
): Result.Result<Condition, UnknownField | InvalidValue> => {
  const index = inputs.findIndex((input) => input.name === name)
  const parameter = inputs[index]
  if (parameter === undefined || name === "")
    return Result.fail(new UnknownField({ name, eventName, known: inputs.map((input) => input.name) }))
  const refuse = (why: string, place: number | null = null) =>
    Result.fail(new InvalidValue({ name, index: place, message: `${parameter.type}: ${why}` }))
  if (inputs.findLastIndex((input) => input.name === name) !== index)
    return refuse("several parameters of the event have this name")
  const values: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (values.length === 0) return refuse("expected at least one value")
  if (values.length > maxValues) return refuse(`expected at most ${maxValues} values`)
  const encoded: Array<Hex.Hex> = []
  for (const [place, value] of values.entries()) {
    const one = encode(parameter, value)
    if (Result.isFailure(one)) return refuse(whyOf(one.failure, value), Array.isArray(given) ? place : null)
    words.left -= Hex.size(one.success) / 32
    if (words.left < 0) return refuse(`expected at most ${maxWords} words of 32 bytes in all fields`)
    encoded.push(one.success)
  }
  return Result.succeed({ index, parameter, encoded })
}

const withoutTrailingNulls = <A>(list: ReadonlyArray<A | null>): ReadonlyArray<A | null> =>
  list.slice(0, list.findLastIndex((item) => item !== null) + 1)

const unique = <A>(list: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(list)]

/** The topics of the conditions on indexed parameters. */
const topicsOf = (
  { anonymous, inputs, topic }: EventDefinition,
  conditions: ReadonlyArray<Condition>
): EventFilter["topics"] => {
  const wanted = new Map<Parameter.Parameter, ReadonlyArray<Hex.Bytes32>>()
  for (const { encoded, parameter } of conditions) {
    if (parameter.indexed !== true) continue
    wanted.set(parameter, unique(encoded.map((value) => topicOf(parameter, value))))
  }
  const indexed = inputs.filter((input) => input.indexed === true)
  return withoutTrailingNulls<ReadonlyArray<Hex.Bytes32>>([
    ...(anonymous ? [] : [[topic]]),
    ...indexed.map((parameter) => wanted.get(parameter) ?? null)
  ])
}

/** Condition on a parameter that is not indexed: its place in the decoded log, and the allowed values. */
interface Wanted {
  readonly place: string
  readonly keys: ReadonlySet<string>
}

const plainOf = (
  { inputs }: EventDefinition,
  conditions: ReadonlyArray<Condition>
): ReadonlyArray<Wanted> => {
  const named = Parameter.allNamed(inputs)
  const plain: Array<Wanted> = []
  for (const { encoded, index, parameter } of conditions) {
    if (parameter.indexed === true) continue
    const keys = new Set<string>()
    for (const value of encoded) {
      const decoded = Values.decode([parameter], value)
      if (Result.isSuccess(decoded)) keys.add(keyOf(decoded.success[0] ?? null))
    }
    plain.push({ place: named ? parameter.name : String(index), keys })
  }
  return plain
}

/**
 * The filter of one event. In non-indexed parameters of type `string`, malformed UTF-8 counts as U+FFFD, as it is shown.
 */
export const make = (
  definition: EventDefinition,
  fields: Readonly<Record<string, unknown>>
): Result.Result<EventFilter, UnknownField | InvalidValue> => {
  const conditions: Array<Condition> = []
  const words: Values.Allowance = { left: maxWords }
  for (const [name, given] of Object.entries(fields)) {
    const one = condition(definition, name, given, words)
    if (Result.isFailure(one)) return Result.fail(one.failure)
    conditions.push(one.success)
  }
  const topics = topicsOf(definition, conditions)
  const topicSets = topics.map((list) => (list === null ? null : new Set<string>(list)))
  const plain = plainOf(definition, conditions)
  const own: Values.Allowance = { left: maxValuesInAll }
  const hasTopics = (log: RawLog): boolean =>
    topicSets.every((set, place) => set === null || set.has(log.topics[place] ?? ""))
  return Result.succeed({
    definition,
    topics,
    match: (log, allowance = own) => {
      if (!hasTopics(log)) return null
      const decoded = Log.read(definition, log, allowance)
      if (decoded === "tooMuch") return Log.raw(log)
      if (decoded === null) return null
      if (plain.length === 0) return decoded
      const args = new Map<string, Values.Json>(Object.entries(Object(decoded.args)))
      return plain.every(({ keys, place }) => keys.has(keyOf(args.get(place) ?? null))) ? decoded : null
    },
    matchTopics: (log, may) =>
      (plain.length === 0 || may !== undefined) && hasTopics(log) ? Log.readTopics(definition, log) : null
  })
}

/** A name in the conditions that no parameter of the event has. */
export class UnknownField extends Data.TaggedError("UnknownField")<{
  readonly name: string
  readonly eventName: string
  /** The names of the event's parameters. */
  readonly known: ReadonlyArray<string>
}> {}

/** A value that does not fit its parameter's type; `index` is its place in the list, null for a single value. */
export class InvalidValue extends Data.TaggedError("InvalidValue")<{
  readonly name: string
  readonly index: number | null
  readonly message: string
}> {}
