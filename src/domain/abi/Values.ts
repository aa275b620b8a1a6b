import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Parameter from "./Parameter.js"

/**
 * ABI-encoded bytes to JSON: integers are decimal strings, bytes 0x hex, addresses EIP-55, booleans booleans,
 * tuples objects when all components have distinct names, otherwise arrays. A string that is not UTF-8 keeps its
 * readable parts, each malformed sequence replaced by U+FFFD.
 *
 * Bytes that Solidity's own decoder would refuse are refused: bits outside of the type, offsets and lengths
 * that lead out of the data. Missing padding at the very end and bytes behind the values are accepted, since
 * contracts emit both.
 *
 * The work is bounded by the size of the data, however its offsets point, and by `maxValues` if given: the node chooses
 * the data.
 */

/** A JSON value. */
export type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }

/**
 * Most reads of a word, on average. Encoders never point twice at the same bytes; hostile data do,
 * to make a few bytes stand for billions of values.
 */
const maxReadsPerWord = 4

/**
 * Values that are decoded of one piece of data, arrays, tuples and their members alike; 256 bytes of a text or of bytes
 * count as one.
 */
export const maxValues = 16_384

/** Values of one log or one revert reason: an answer has many of them. */
export const maxValuesAtOnce = 4_096

const bytesPerValue = 256

/** Values that several pieces of data may still decode to, together. */
export interface Allowance {
  left: number
}

const zeros = "0".repeat(64)
const indexDigits = 12
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true })

/** Never leaves this module: `decode` turns it into a `Failure`. */
class Refusal {
  constructor(
    readonly why: string,
    readonly tooMuch = false
  ) {}
}

const refuse = (why: string): never => {
  throw new Refusal(why)
}

/** Hex digits without 0x, and the remaining budgets. */
interface Source {
  readonly digits: string
  readonly size: number
  readonly bound: string
  /** Whether the last text or bytes may end with the data, before their length. */
  readonly cut: boolean
  readsLeft: number
  valuesLeft: number
}

const count = (source: Source, values: number): void => {
  source.valuesLeft -= values
  if (source.valuesLeft < 0) throw new Refusal(source.bound, true)
}

const spend = (source: Source, words: number): void => {
  source.readsLeft -= words
  if (source.readsLeft < 0) refuse("the same bytes are used over and over")
}

const word = (source: Source, at: number): string => {
  if (at + 32 > source.size) return refuse("the data end too early")
  spend(source, 1)
  return source.digits.slice(2 * at, 2 * at + 64)
}

/** An offset or a length: a word that is far below 2^53. */
const index = (source: Source, at: number): number => {
  const digits = word(source, at)
  return digits.startsWith(zeros.slice(indexDigits))
    ? Number.parseInt(digits.slice(-indexDigits), 16)
    : refuse("an offset or a length leads out of the data")
}

const span = (source: Source, at: number, size: number): string => {
  const end = source.cut ? Math.min(at + size, source.size) : at + size
  if (at > source.size || end > source.size) return refuse("an offset or a length leads out of the data")
  spend(source, Math.ceil((end - at) / 32))
  count(source, Math.floor((end - at) / bytesPerValue))
  return source.digits.slice(2 * at, 2 * end)
}

const text = (digits: string): string => utf8.decode(Hex.toBytes(Hex.unsafe(`0x${digits}`)))

const integer = (type: Parameter.IntegerType, digits: string): string => {
  const raw = BigInt(`0x${digits}`)
  const value = type.kind === "int" ? BigInt.asIntN(256, raw) : raw
  const fits = type.kind === "int" ? BigInt.asIntN(type.bits, value) : BigInt.asUintN(type.bits, value)
  return fits === value ? value.toString() : refuse(`an integer does not fit in ${type.canonical}`)
}

const address = (digits: string): string =>
  digits.startsWith(zeros.slice(40))
    ? Address.fromAnyWord(digits)
    : refuse("an address is longer than 20 bytes")

const boolean = (digits: string): boolean => {
  if (!digits.startsWith(zeros.slice(1))) return refuse("a boolean is neither 0 nor 1")
  if (digits.endsWith("0")) return false
  return digits.endsWith("1") || refuse("a boolean is neither 0 nor 1")
}

const fixedBytes = (digits: string, size: number): string =>
  digits.endsWith(zeros.slice(2 * size))
    ? `0x${digits.slice(0, 2 * size)}`
    : refuse(`bytes${size} is followed by other bytes`)

const array = (source: Source, type: Parameter.ArrayType, at: number): Json => {
  const length = type.length ?? index(source, at)
  const start = type.length === null ? at + 32 : at
  const step = 32 * type.element.words
  if (start + length * step > source.size) return refuse("an offset or a length leads out of the data")
  const elements: Array<Json> = []
  for (let i = 0; i < length; i++) elements.push(valueAt(source, type.element, start, start + i * step))
  return elements
}

const elementary = (
  source: Source,
  type: Exclude<Parameter.Type, Parameter.ArrayType | Parameter.TupleType>,
  at: number
): Json => {
  switch (type.kind) {
    case "uint":
    case "int":
      return integer(type, word(source, at))
    case "address":
      return address(word(source, at))
    case "bool":
      return boolean(word(source, at))
    case "fixedBytes":
      return fixedBytes(word(source, at), type.size)
    case "bytes":
      return `0x${span(source, at + 32, index(source, at))}`
    case "string":
      return text(span(source, at + 32, index(source, at)))
  }
}

/** The value whose head is at `head`, in a sequence whose offsets count from `start`. */
const valueAt = (source: Source, type: Parameter.Type, start: number, head: number): Json => {
  count(source, 1)
  const at = type.dynamic ? start + index(source, head) : head
  if (type.kind === "array") return array(source, type, at)
  if (type.kind === "tuple") return keyed(type.components, type.named, sequence(source, type.components, at))
  return elementary(source, type, at)
}

const sequence = (
  source: Source,
  parameters: ReadonlyArray<Parameter.Parameter>,
  start: number
): ReadonlyArray<Json> => {
  const values: Array<Json> = []
  let head = start
  for (const { base } of parameters) {
    values.push(valueAt(source, base, start, head))
    head += 32 * base.words
  }
  return values
}

const keyed = (
  parameters: ReadonlyArray<Parameter.Parameter>,
  named: boolean,
  values: ReadonlyArray<Json>
): Json =>
  // Object.fromEntries defines own properties, so that a component called __proto__ is data like any other.
  named ? Object.fromEntries(parameters.map(({ name }, i) => [name, values[i] ?? null])) : values

/** Values as an object by name, or as an array where `Parameter.allNamed` does not hold. */
export const byName = (parameters: ReadonlyArray<Parameter.Parameter>, values: ReadonlyArray<Json>): Json =>
  keyed(parameters, Parameter.allNamed(parameters), values)

export interface Options {
  /** Text and bytes may be incomplete: the data were shortened. */
  readonly cut?: boolean
  /** Default: any number. For untrusted data, `maxValues` or `maxValuesAtOnce`. */
  readonly maxValues?: number
  /** Is lessened by the values of these data, also when they turn out to be undecodable. */
  readonly allowance?: Allowance
}

/** Decodes one value per output. Never throws. */
export const decode = (
  outputs: ReadonlyArray<Parameter.Parameter>,
  data: Hex.Hex,
  {
    allowance = { left: Number.POSITIVE_INFINITY },
    cut = false,
    maxValues: most = Number.POSITIVE_INFINITY
  }: Options = {}
): Result.Result<ReadonlyArray<Json>, UndecodableData> => {
  const digits = data.slice(2)
  const size = digits.length / 2
  const valuesLeft = Math.min(most, allowance.left)
  const source: Source = {
    digits,
    size,
    bound: valuesLeft < most ? "too much for one request" : `more than ${most} values`,
    cut,
    readsLeft: maxReadsPerWord * Math.ceil(size / 32),
    valuesLeft
  }
  try {
    return Result.succeed(sequence(source, outputs, 0))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const why = size === 0 ? "there are none" : error.why
    const message = error.tooMuch
      ? `the data hold ${error.why}`
      : `the data do not fit ${Parameter.canonicalList(outputs)}: ${why}`
    return Result.fail(new UndecodableData({ message, tooMuch: error.tooMuch }))
  } finally {
    allowance.left -= valuesLeft - Math.max(0, source.valuesLeft)
  }
}

/** Bytes that do not encode the expected types, or hold more values than are decoded (`tooMuch`). */
export class UndecodableData extends Data.TaggedError("UndecodableData")<{
  readonly message: string
  readonly tooMuch: boolean
}> {}
