import type * as Brand from "effect/Brand"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"

/** Bytes as `0x` and an even number of lower-case hex digits. */
export type Hex = string & Brand.Brand<"Hex">

/** Exactly 32 bytes: hashes, topics, salts, storage words. */
export type Bytes32 = Hex & Brand.Brand<"Bytes32">

export const pattern = /^0x(?:[0-9a-fA-F]{2})*$/

/** True for `0x` and an even number of hex digits of either case. */
export const is = (text: string): boolean => pattern.test(text)

/** For text already known to be bytes in hex (a library's output); lowers its case. */
export const unsafe = (text: string): Hex => text.toLowerCase() as Hex

/** For text already known to be 32 bytes in hex. */
export const unsafe32 = (text: string): Bytes32 => text.toLowerCase() as Bytes32

/** Text to bytes; `Left` says why not. */
export const from = (text: string): Either.Either<Hex, string> =>
  is(text) ? Either.right(unsafe(text)) : Either.left("expected 0x and an even number of hex digits")

/** Text to exactly 32 bytes; `Left` says why not. */
export const from32 = (text: string): Either.Either<Bytes32, string> =>
  is(text) && text.length === 66
    ? Either.right(unsafe32(text))
    : Either.left("expected 32 bytes: 0x and 64 hex digits")

/** Number of bytes. */
export const size = (hex: Hex): number => (hex.length - 2) / 2

/** Bytes of all parts, in order. */
export const concat = (...parts: ReadonlyArray<Hex>): Hex =>
  `0x${parts.map((part) => part.slice(2)).join("")}` as Hex

const digitsOf = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

/** Bytes in hex. */
export const fromBytes = (bytes: Uint8Array): Hex =>
  `0x${Array.from(bytes, (byte) => digitsOf[byte]).join("")}` as Hex

/** The bytes. */
export const toBytes = (hex: Hex): Uint8Array =>
  Uint8Array.from({ length: size(hex) }, (_, at) => Number.parseInt(hex.slice(2 + 2 * at, 4 + 2 * at), 16))

/** No bytes. */
export const empty = "0x" as Hex

const lowerCase = /^0x(?:[0-9a-f]{2})*$/
const HexFromSelf = Schema.String.pipe(Schema.pattern(lowerCase), Schema.brand("Hex"))
const Bytes32FromSelf = Schema.String.pipe(
  Schema.pattern(/^0x[0-9a-f]{64}$/),
  Schema.brand("Hex"),
  Schema.brand("Bytes32")
)

/** Wire codec: hex text of either case in, lower case out. */
export const schema: Schema.Schema<Hex, string> = Schema.transformOrFail(Schema.String, HexFromSelf, {
  strict: true,
  decode: (text, _, ast) => Either.mapLeft(from(text), (why) => new ParseResult.Type(ast, text, why)),
  encode: (hex) => ParseResult.succeed(hex)
}).annotations({ identifier: "Hex", jsonSchema: { type: "string", pattern: "^0x([0-9a-fA-F]{2})*$" } })

/** Wire codec of exactly 32 bytes. */
export const schema32: Schema.Schema<Bytes32, string> = Schema.transformOrFail(
  Schema.String,
  Bytes32FromSelf,
  {
    strict: true,
    decode: (text, _, ast) => Either.mapLeft(from32(text), (why) => new ParseResult.Type(ast, text, why)),
    encode: (hex) => ParseResult.succeed(hex)
  }
).annotations({ identifier: "Bytes32", jsonSchema: { type: "string", pattern: "^0x[0-9a-fA-F]{64}$" } })
