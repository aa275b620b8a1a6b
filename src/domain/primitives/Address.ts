import type * as Brand from "effect/Brand"
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidValue } from "./InvalidValue.js"
import * as Keccak from "./Keccak.js"
import { Lru } from "./Lru.js"
import * as Wire from "./Wire.js"

/** A 20-byte account address, always in its EIP-55 form. */
export type Address = string & Brand.Brand<"Address">

const shape = /^0x[0-9a-fA-F]{40}$/

/**
 * Addresses seen lately, by their EIP-55 or lower-case text: a service meets the same few again and again, and a
 * checksum is a hash. The keys are our own strings: a slice of a caller's text would keep the whole text.
 */
const seen = new Lru<string, Address>(8_192)

const make = (text: string): Address => {
  const address = Keccak.checksum(text.slice(2).toLowerCase()) as Address
  // Longer text, such as a field of hostile bytes, must not set the checksum of the address with which it begins.
  if (text.length === address.length) seen.set(text === address ? address : address.toLowerCase(), address)
  return address
}

/**
 * For text already known to be an address (a library's output); any case.
 *
 * @example Address.unsafe("0xa74c4740782ba52ff7f8dc3511c73e6054067c67")
 * // "0xA74C4740782Ba52FF7f8dC3511c73e6054067c67"
 */
export const unsafe = (text: string): Address => seen.get(text) ?? make(text)

/**
 * Text to an address. Accepts all-lower and all-upper digits; mixed case must carry the
 * EIP-55 checksum. `Failure` says why not.
 *
 * @example Result.getOrThrow(Address.from("0xa74c4740782ba52ff7f8dc3511c73e6054067c67"))
 * // "0xA74C4740782Ba52FF7f8dC3511c73e6054067c67"
 */
export const from = (text: string): Result.Result<Address, InvalidValue> => {
  const before = seen.get(text)
  if (before !== undefined) return Result.succeed(before)
  if (!shape.test(text)) return Result.fail(invalid("expected an address: 0x and 40 hex digits"))
  const digits = text.slice(2)
  const checksummed = make(text)
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase() || text === checksummed)
    return Result.succeed(checksummed)
  return Result.fail(invalid("the address is of mixed case and its EIP-55 checksum does not match"))
}

const invalid = (message: string) => new InvalidValue({ type: "Address", message })

/** The zero address, which no key controls. */
export const zero = "0x0000000000000000000000000000000000000000" as Address

/**
 * The address in the low 20 bytes of a 32-byte ABI word.
 *
 * @example Address.fromWord(`0x${"0".repeat(62)}17`)
 * // "0x0000000000000000000000000000000000000017"
 */
export const fromWord = (word: string): Address => unsafe(`0x${word.slice(-40)}`)

/**
 * The address in a lower-case ABI word, without the cache: for words in unbounded number.
 *
 * @example Address.fromAnyWord(`0x${"0".repeat(62)}17`)
 * // "0x0000000000000000000000000000000000000017"
 */
export const fromAnyWord = (word: string): Address => Keccak.checksum(word.slice(-40)) as Address

/** Wire codec: hex text (EIP-55 checked when of mixed case) in, EIP-55 out. */
export const schema: Schema.Codec<Address, string> = Wire.codec(
  Wire.shown(Schema.String, { pattern: "^0x[0-9a-fA-F]{40}$" }).annotate({ identifier: "Address" }),
  Schema.String.pipe(Schema.check(Schema.isPattern(shape)), Schema.brand("Address")),
  from,
  identity
)
