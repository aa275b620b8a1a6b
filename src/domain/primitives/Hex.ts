import type * as Brand from "effect/Brand"
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidValue } from "./InvalidValue.js"
import * as Wire from "./Wire.js"

/** Bytes as `0x` and an even number of lower-case hex digits. */
export type Hex = string & Brand.Brand<"Hex">

/** Exactly 32 bytes: hashes, topics, salts, storage words. */
export type Bytes32 = Hex & Brand.Brand<"Bytes32">

// One class, repeated: linear in the text, and without a stack of backtracking positions.
const digits = /^0x[0-9a-fA-F]*$/

/**
 * True for `0x` and an even number of hex digits of either case.
 *
 * @example Hex.is("0xabc")
 * // false
 */
export const is = (text: string): boolean => text.length % 2 === 0 && digits.test(text)

/**
 * For text already known to be bytes in hex (a library's output); lowers its case.
 *
 * @example Hex.unsafe("0xABcd")
 * // "0xabcd"
 */
export const unsafe = (text: string): Hex => text.toLowerCase() as Hex

/**
 * For text already known to be 32 bytes in hex.
 *
 * @example Hex.size(Hex.unsafe32(`0x${"AB".repeat(32)}`))
 * // 32
 */
export const unsafe32 = (text: string): Bytes32 => text.toLowerCase() as Bytes32

/**
 * Text to bytes; `Failure` says why not.
 *
 * @example Result.getOrThrow(Hex.from("0xABcd"))
 * // "0xabcd"
 */
export const from = (text: string): Result.Result<Hex, InvalidValue> =>
  is(text)
    ? Result.succeed(unsafe(text))
    : Result.fail(new InvalidValue({ type: "Hex", message: "expected 0x and an even number of hex digits" }))

/**
 * Text to exactly 32 bytes; `Failure` says why not.
 *
 * @example Result.getOrThrow(Result.flip(Hex.from32("0xabcd"))).message
 * // "expected 32 bytes: 0x and 64 hex digits"
 */
export const from32 = (text: string): Result.Result<Bytes32, InvalidValue> =>
  is(text) && text.length === 66
    ? Result.succeed(unsafe32(text))
    : Result.fail(new InvalidValue({ type: "Bytes32", message: "expected 32 bytes: 0x and 64 hex digits" }))

/**
 * Number of bytes.
 *
 * @example Hex.size(Hex.unsafe("0xabcd"))
 * // 2
 */
export const size = (hex: Hex): number => (hex.length - 2) / 2

/**
 * The bytes from `from` on, up to `to`.
 *
 * @example Hex.slice(Hex.unsafe("0xa9059cbb0001"), 0, 4)
 * // "0xa9059cbb"
 */
export const slice = (hex: Hex, from: number, to?: number): Hex =>
  `0x${hex.slice(2 + from * 2, to === undefined ? undefined : 2 + to * 2)}` as Hex

/**
 * Bytes of all parts, in order.
 *
 * @example Hex.concat(Hex.unsafe("0xab"), Hex.unsafe("0xcd"))
 * // "0xabcd"
 */
export const concat = (...parts: ReadonlyArray<Hex>): Hex =>
  `0x${parts.map((part) => part.slice(2)).join("")}` as Hex

const ascii = new TextDecoder("latin1")

/**
 * Bytes in hex. By way of an array: a string concatenated from many parts is slow to read.
 *
 * @example Hex.fromBytes(Uint8Array.of(171, 205))
 * // "0xabcd"
 */
export const fromBytes = (bytes: Uint8Array): Hex => {
  const units = new Uint8Array(2 + 2 * bytes.length)
  units.set([0x30, 0x78])
  for (let at = 0, to = 2; at < bytes.length; at++, to += 2) {
    const byte = bytes[at] as number
    units[to] = digitUnits[byte >> 4] as number
    units[to + 1] = digitUnits[byte & 15] as number
  }
  return ascii.decode(units) as Hex
}

const utf8 = new TextEncoder()

/**
 * The text's UTF-8.
 *
 * @example Hex.fromText("é")
 * // "0xc3a9"
 */
export const fromText = (text: string): Hex => fromBytes(utf8.encode(text))

const digitUnits = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0))

/** Value of a UTF-16 unit as a hex digit. */
const worth = new Uint8Array(128)
for (let digit = 0; digit < 16; digit++) {
  worth[digit.toString(16).charCodeAt(0)] = digit
  worth[digit.toString(16).toUpperCase().charCodeAt(0)] = digit
}

/**
 * The bytes.
 *
 * @example Hex.toBytes(Hex.unsafe("0xabcd"))
 * // Uint8Array.of(171, 205)
 */
export const toBytes = (hex: Hex): Uint8Array => {
  const bytes = new Uint8Array(size(hex))
  for (let at = 0, from = 2; at < bytes.length; at++, from += 2)
    bytes[at] = ((worth[hex.charCodeAt(from)] as number) << 4) | (worth[hex.charCodeAt(from + 1)] as number)
  return bytes
}

/** No bytes. */
export const empty = "0x" as Hex

const lowerCase = /^0x[0-9a-f]*$/
const HexFromSelf = Schema.String.pipe(
  Schema.check(Schema.makeFilter((text) => text.length % 2 === 0 && lowerCase.test(text))),
  Schema.brand("Hex")
)
const Bytes32FromSelf = Schema.String.pipe(
  Schema.check(Schema.isPattern(/^0x[0-9a-f]{64}$/)),
  Schema.brand("Hex"),
  Schema.brand("Bytes32")
)

/** Wire codec: hex text of either case in, lower case out. */
export const schema: Schema.Codec<Hex, string> = Wire.codec(
  Wire.shown(Schema.String, { pattern: "^0x([0-9a-fA-F]{2})*$" }).annotate({ identifier: "Hex" }),
  HexFromSelf,
  from,
  identity
)

/** Wire codec of exactly 32 bytes. */
export const schema32: Schema.Codec<Bytes32, string> = Wire.codec(
  Wire.shown(Schema.String, { pattern: "^0x[0-9a-fA-F]{64}$" }).annotate({ identifier: "Bytes32" }),
  Bytes32FromSelf,
  from32,
  identity
)
