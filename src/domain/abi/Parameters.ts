import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Json from "../json/Json.js"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as InvalidValue from "../primitives/InvalidValue.js"
import * as Suggestion from "../primitives/Suggestion.js"
import * as Uint from "../primitives/Uint.js"
import type { FunctionSignature } from "./FunctionSignature.js"
import * as Parameter from "./Parameter.js"

/**
 * Converts strings to ABI-encoded bytes. Each type takes:
 *
 * - integers: decimal (`-` for signed types) or 0x hex of at most 32 bytes; no leading zeros, `+`, fraction,
 *   exponent or white space
 * - `address`: 0x and 40 hex digits, EIP-55 checked when of mixed case
 * - `bool`: `true` or `false`
 * - `bytes`: 0x and hex digit pairs; `bytesN`: exactly N bytes
 * - `string`: the text itself, which must be well-formed Unicode
 * - arrays and tuples: JSON text, or a JSON value: arrays, and for tuples with named components also objects
 *
 * Inside such JSON, elements are the same strings; booleans and safe integers may be written plainly. A JSON number
 * beyond 2^53 is refused because it has lost digits before anyone could see them.
 */

/**
 * Values that one call may be given, arrays, tuples and their members alike: as words they are 128 KiB, more than nodes
 * take of a transaction.
 */
export const maxValues = 4_096

/** Values that may still be encoded, of so many in all. */
interface Room {
  left: number
  readonly most: number
}

/** The hex digits of a value, or why it does not fit its type. */
type Encoded = Result.Result<string, string>

const lowerAddress = /^0x[0-9a-f]{40}$/
const loneSurrogate = /[\ud800-\udfff]/u
const inexactNumber = /[0-9](?:\.[0-9]|[eE])|-0(?![0-9])/
const negative = /^-[1-9][0-9]{0,77}$/

const wordSpace = 1n << 256n
const utf8 = new TextEncoder()

const padRight = (digits: string): string => digits.padEnd(Math.ceil(digits.length / 64) * 64, "0")

const signed = (text: string, bits: number): Encoded => {
  const limit = 1n << BigInt(bits - 1)
  if (negative.test(text)) {
    const value = BigInt(text)
    return value >= -limit
      ? Result.succeed(Uint.toWord(wordSpace + value))
      : Result.fail(Uint.misfit(text, `int${bits}`))
  }
  const value = Uint.from(text, 256)
  return Result.isSuccess(value) && value.success < limit
    ? Result.succeed(Uint.toWord(value.success))
    : Result.fail(Uint.misfit(text, `int${bits}`))
}

/** Decimal digits that a double holds exactly, and the most bits of such a number. */
const short = { pattern: /^(?:0|[1-9][0-9]{0,14})$/, bits: 50 }

const integer = (type: Parameter.IntegerType, text: string): Encoded =>
  type.bits > short.bits && short.pattern.test(text)
    ? Result.succeed(Number(text).toString(16).padStart(64, "0"))
    : bigInteger(type, text)

const bigInteger = (type: Parameter.IntegerType, text: string): Encoded =>
  type.kind === "int"
    ? signed(text, type.bits)
    : Result.map(InvalidValue.toText(Uint.from(text, type.bits)), Uint.toWord)

/** The high 12 bytes of an address's word. */
const leftOfAddress = "0".repeat(24)

const address = (text: string): Encoded => {
  if (lowerAddress.test(text)) return Result.succeed(leftOfAddress + text.slice(2))
  const checked = Address.from(text)
  return Result.isSuccess(checked)
    ? Result.succeed(leftOfAddress + checked.success.slice(2).toLowerCase())
    : InvalidValue.toText(checked)
}

const bytes = (text: string): Encoded =>
  Result.map(
    InvalidValue.toText(Hex.from(text)),
    (hex) => Uint.toWord(BigInt(Hex.size(hex))) + padRight(hex.slice(2))
  )

const fixedBytes = (text: string, size: number): Encoded =>
  Hex.is(text) && text.length === 2 + 2 * size
    ? Result.succeed(padRight(text.slice(2).toLowerCase()))
    : Result.fail(`expected exactly ${size} bytes: 0x and ${2 * size} hex digits`)

const string = (text: string): Encoded => {
  if (loneSurrogate.test(text)) return Result.fail("the text is not well-formed Unicode")
  const encoded = utf8.encode(text)
  return Result.succeed(Uint.toWord(BigInt(encoded.length)) + padRight(Hex.fromBytes(encoded).slice(2)))
}

const elementary = (
  type: Parameter.PlainType | Parameter.IntegerType | Parameter.FixedBytesType,
  text: string
): Encoded => {
  switch (type.kind) {
    case "uint":
    case "int":
      return integer(type, text)
    case "address":
      return address(text)
    case "bool":
      if (text === "true") return Result.succeed(Uint.toWord(1n))
      if (text === "false") return Result.succeed(Uint.toWord(0n))
      return Result.fail("expected true or false")
    case "bytes":
      return bytes(text)
    case "fixedBytes":
      return fixedBytes(text, type.size)
    case "string":
      return string(text)
  }
}

/** The string form of a value of a simple type: a string, boolean or safe integer of JSON. */
const plainly = (type: Parameter.Type, value: unknown): Encoded => {
  if (typeof value === "string") return Result.succeed(value)
  if (typeof value === "boolean" && type.kind === "bool") return Result.succeed(String(value))
  if (typeof value === "number" && (type.kind === "uint" || type.kind === "int"))
    return Number.isSafeInteger(value) && !Object.is(value, -0)
      ? Result.succeed(String(value))
      : Result.fail("a JSON number must be an integer below 2^53: write it as a string")
  return Result.fail(`expected a string, got ${InvalidValue.kindOf(value)}`)
}

const components = (
  { components: parameters, named }: Parameter.TupleType,
  value: unknown
): Result.Result<ReadonlyArray<unknown>, string> => {
  if (Array.isArray(value))
    return value.length === parameters.length
      ? Result.succeed(value)
      : Result.fail(`expected ${parameters.length} components, got ${value.length}`)
  if (typeof value !== "object" || value === null)
    return Result.fail(`expected a JSON array or object, got ${InvalidValue.kindOf(value)}`)
  if (!named) return Result.fail("expected a JSON array: the components have no distinct names")
  const given = new Map<string, unknown>(Object.entries(value))
  const missing = parameters.find((parameter) => !given.has(parameter.name))
  if (missing === undefined && given.size === parameters.length)
    return Result.succeed(parameters.map((parameter) => given.get(parameter.name)))
  const names = parameters.map((parameter) => parameter.name)
  const stray = [...given.keys()].find((name) => !names.includes(name))
  return Result.fail(
    stray === undefined
      ? `the component ${missing?.name ?? ""} is missing`
      : `there is no component ${JSON.stringify(stray.slice(0, 64))}${Suggestion.tell(stray, names)}`
  )
}

const tuple = (type: Parameter.TupleType, value: unknown, room: Room): Encoded =>
  Result.flatMap(components(type, value), (values) =>
    Result.mapError(
      sequence((index) => type.components[index]?.base, values, encodeValue, room),
      ({ index, why }) => `${type.components[index]?.name || `component ${index}`}: ${why}`
    )
  )

const array = (type: Parameter.ArrayType, value: unknown, room: Room): Encoded => {
  if (!Array.isArray(value)) return Result.fail(`expected a JSON array, got ${InvalidValue.kindOf(value)}`)
  if (type.length !== null && value.length !== type.length)
    return Result.fail(`expected ${type.length} elements, got ${value.length}`)
  return Result.mapBoth(
    sequence(() => type.element, value, encodeValue, room),
    {
      onFailure: ({ index, why }) => `element ${index}: ${why}`,
      onSuccess: (digits) => (type.length === null ? Uint.toWord(BigInt(value.length)) + digits : digits)
    }
  )
}

const encodeValue = (type: Parameter.Type, value: unknown, room: Room): Encoded => {
  room.left -= 1
  if (room.left < 0) return Result.fail(`the call has more than ${room.most} values`)
  if (type.kind === "tuple") return tuple(type, value, room)
  if (type.kind === "array") return array(type, value, room)
  return Result.flatMap(plainly(type, value), (text) => elementary(type, text))
}

/** Heads first, then the tails that their offsets point to. */
const sequence = (
  typeAt: (index: number) => Parameter.Type | undefined,
  values: ReadonlyArray<unknown>,
  encodeOne: (type: Parameter.Type, value: unknown, room: Room) => Encoded,
  room: Room
): Result.Result<string, { readonly index: number; readonly why: string }> => {
  let offset = 0
  for (let index = 0; index < values.length; index++) offset += 32 * (typeAt(index)?.words ?? 0)
  let heads = ""
  let tails = ""
  for (let index = 0; index < values.length; index++) {
    const type = typeAt(index)
    if (type === undefined) return Result.fail({ index, why: "there is no such value" })
    const encoded = encodeOne(type, values[index], room)
    if (Result.isFailure(encoded)) return Result.fail({ index, why: encoded.failure })
    if (type.dynamic) {
      heads += Uint.toWord(BigInt(offset))
      tails += encoded.success
      offset += encoded.success.length / 2
    } else heads += encoded.success
  }
  return Result.succeed(heads + tails)
}

// Escapes go first, so that the quotes that are left delimit strings; both patterns run in linear time.
const outsideStrings = (json: string): string => json.replace(/\\./gs, "").replace(/"[^"]*"/g, '""')

/** Names in all objects of a parsed value. It may be nested deeper than calls can be. */
const countNames = (value: unknown): number => {
  const open: Array<unknown> = [value]
  let names = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue
    const inside: ReadonlyArray<unknown> = Object.values(next)
    if (!Array.isArray(next)) names += inside.length
    for (const one of inside) open.push(one)
  }
  return names
}

/** Longest example of a value in a refusal, in characters. */
const maxExample = 200

/** A value of the type as JSON, while there is room for it. */
const example = (type: Parameter.Type, room: Room): string => {
  const list = (types: ReadonlyArray<Parameter.Type>) => {
    const shown: Array<string> = []
    for (const one of types) if (room.left > 0) shown.push(example(one, room))
    return `[${shown.join(",")}]`
  }
  room.left -= 5
  switch (type.kind) {
    case "array":
      return list(new Array<Parameter.Type>(Math.min(type.length ?? 1, room.most)).fill(type.element))
    case "tuple":
      return list(type.components.map(({ base }) => base))
    case "address":
      return `"0x${"0".repeat(39)}1"`
    case "bool":
      return "true"
    case "string":
      return '"text"'
    case "bytes":
      return '"0x12ab"'
    case "fixedBytes":
      return `"0x${"00".repeat(type.size)}"`
    default:
      return '"1"'
  }
}

/** Refuses text for an array or a tuple, with an example if it fits a line. */
const withExample = (why: string, type: Parameter.Type): Encoded => {
  const shown = example(type, { left: maxExample, most: maxExample })
  return Result.fail(shown.length > maxExample ? why : `${why}, for example ${shown}`)
}

/** Numbers that lose digits, and all but the last value of a name, are gone once the text is parsed. */
const fromText = (type: Parameter.Type, text: string, room: Room): Encoded => {
  // Twice: an empty array begins a value and holds none.
  if (Json.holdsMore(text, 2 * room.most)) return Result.fail(`the call has more than ${room.most} values`)
  const parsed = Result.try({ try: (): unknown => JSON.parse(text), catch: () => "expected JSON text" })
  if (Result.isFailure(parsed)) return withExample(parsed.failure, type)
  const value = parsed.success
  if (typeof value !== "object" || value === null)
    return withExample(
      `expected a JSON array${type.kind === "tuple" ? " or object" : ""}, got ${InvalidValue.kindOf(value)}`,
      type
    )
  const structure = outsideStrings(text)
  if (inexactNumber.test(structure))
    return Result.fail("a JSON number must be an integer below 2^53: write it as a string")
  return structure.split(":").length - 1 === countNames(value)
    ? encodeValue(type, value, room)
    : Result.fail("a name occurs twice in one JSON object")
}

/** A top-level value: only arrays and tuples may be anything but a string. */
const encodeParameter = (type: Parameter.Type, value: unknown, room: Room): Encoded => {
  if (type.kind === "array" || type.kind === "tuple")
    return typeof value === "string" ? fromText(type, value, room) : encodeValue(type, value, room)
  return typeof value === "string"
    ? elementary(type, value)
    : Result.fail(`expected a string, got ${InvalidValue.kindOf(value)}`)
}

/** The hex digits of the encoding, in lower case. */
const digitsOf = (
  inputs: ReadonlyArray<Parameter.Parameter>,
  values: ReadonlyArray<unknown>,
  most: number
): Result.Result<string, InvalidParameters> => {
  if (values.length !== inputs.length)
    return Result.fail(
      new InvalidParameters({
        index: null,
        message: `invalid function parameters: expected ${inputs.length} ${Parameter.canonicalList(inputs)}, got ${values.length}`
      })
    )
  return Result.mapError(
    sequence((index) => inputs[index]?.base, values, encodeParameter, { left: most, most }),
    ({ index, why }) =>
      new InvalidParameters({
        index,
        message: `invalid function parameter ${index} (${inputs[index]?.type ?? ""}): ${why}`
      })
  )
}

/** ABI-encodes one value per input, at most `most` values in all. The result has no selector. */
export const encode = (
  inputs: ReadonlyArray<Parameter.Parameter>,
  values: ReadonlyArray<unknown>,
  most = Number.POSITIVE_INFINITY
): Result.Result<Hex.Hex, InvalidParameters> =>
  Result.map(digitsOf(inputs, values, most), (digits) => `0x${digits}` as Hex.Hex)

/** Calldata: the selector and the encoded values; empty for `receive()`. */
export const encodeCall = (
  signature: FunctionSignature,
  values: ReadonlyArray<unknown>,
  most = Number.POSITIVE_INFINITY
): Result.Result<Hex.Hex, InvalidParameters> =>
  Result.map(digitsOf(signature.inputs, values, most), (digits) =>
    signature.selector === null ? Hex.empty : ((signature.selector + digits) as Hex.Hex)
  )

/** Values that do not fit. `index` is the parameter's position, null when their number is wrong. */
export class InvalidParameters extends Data.TaggedError("InvalidParameters")<{
  readonly index: number | null
  readonly message: string
}> {}
