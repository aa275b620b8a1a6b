import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Address from "../evm/Address.js"
import type { Hex } from "../evm/Hex.js"
import * as Parameter from "./Parameter.js"

/**
 * ABI-encoded bytes to JSON: integers are decimal strings, bytes 0x hex, addresses EIP-55, booleans booleans,
 * tuples objects when all components have distinct names, else arrays. A string that is not UTF-8 keeps its
 * readable parts, each malformed sequence replaced by U+FFFD.
 *
 * Bytes that Solidity's own decoder would refuse are refused: bits outside of the type, offsets and lengths
 * that lead out of the data. Missing padding at the very end and bytes behind the values are accepted, since
 * contracts emit both. The work is bounded by the size of the data, however its offsets point.
 */

/** A JSON value. */
export type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }

/**
 * How often a word may be read on the average. Encoders never point twice at the same bytes; hostile data do,
 * to make a few bytes stand for billions of values.
 */
const maxReadsPerWord = 4

const zeros = "0".repeat(64)
const indexDigits = 12
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true })

/** Never leaves this module: `decode` turns it into a `Left`. */
class Refusal {
  constructor(readonly why: string) {}
}

const refuse = (why: string): never => {
  throw new Refusal(why)
}

/** Hex digits without 0x, and what may still be spent on them. */
interface Source {
  readonly digits: string
  readonly size: number
  readonly addresses: Map<string, string>
  /** Whether the last text or bytes may end with the data instead of where their length says. */
  readonly cut: boolean
  readsLeft: number
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
  return source.digits.slice(2 * at, 2 * end)
}

const text = (digits: string): string => {
  const bytes = new Uint8Array(digits.length / 2)
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16)
  return utf8.decode(bytes)
}

const integer = (type: Parameter.IntegerType, digits: string): string => {
  const raw = BigInt(`0x${digits}`)
  const value = type.kind === "int" ? BigInt.asIntN(256, raw) : raw
  const fits = type.kind === "int" ? BigInt.asIntN(type.bits, value) : BigInt.asUintN(type.bits, value)
  return fits === value ? value.toString() : refuse(`an integer does not fit in ${type.canonical}`)
}

const address = (source: Source, digits: string): string => {
  if (!digits.startsWith(zeros.slice(40))) return refuse("an address is longer than 20 bytes")
  const known = source.addresses.get(digits)
  if (known !== undefined) return known
  const checksummed = Address.fromWord(digits)
  source.addresses.set(digits, checksummed)
  return checksummed
}

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

/** The value whose head is at `head`, in a sequence whose offsets count from `start`. */
const valueAt = (source: Source, type: Parameter.Type, start: number, head: number): Json => {
  const at = type.dynamic ? start + index(source, head) : head
  switch (type.kind) {
    case "uint":
    case "int":
      return integer(type, word(source, at))
    case "address":
      return address(source, word(source, at))
    case "bool":
      return boolean(word(source, at))
    case "fixedBytes":
      return fixedBytes(word(source, at), type.size)
    case "bytes":
      return `0x${span(source, at + 32, index(source, at))}`
    case "string":
      return text(span(source, at + 32, index(source, at)))
    case "array":
      return array(source, type, at)
    case "tuple":
      return keyed(type.components, type.named, sequence(source, type.components, at))
  }
}

const sequence = (
  source: Source,
  parameters: ReadonlyArray<Parameter.Parameter>,
  start: number
): ReadonlyArray<Json> => {
  let head = start
  return parameters.map(({ base }) => {
    const value = valueAt(source, base, start, head)
    head += 32 * base.words
    return value
  })
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

/**
 * Decodes one value per output. Never throws, whatever the bytes are. With `cut`, text and bytes may be incomplete:
 * of data that somebody shortened, they are what is left.
 */
export const decode = (
  outputs: ReadonlyArray<Parameter.Parameter>,
  data: Hex,
  { cut = false }: { readonly cut?: boolean } = {}
): Either.Either<ReadonlyArray<Json>, UndecodableData> => {
  const digits = data.slice(2)
  const size = digits.length / 2
  const readsLeft = maxReadsPerWord * Math.ceil(size / 32)
  try {
    return Either.right(sequence({ digits, size, addresses: new Map(), cut, readsLeft }, outputs, 0))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const why = size === 0 ? "there are none" : error.why
    return Either.left(
      new UndecodableData({ message: `the data do not fit ${Parameter.canonicalList(outputs)}: ${why}` })
    )
  }
}

/** Bytes that are no encoding of the expected types. */
export class UndecodableData extends Data.TaggedError("UndecodableData")<{ readonly message: string }> {}
