import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidValue, quote } from "./InvalidValue.js"
import * as Wire from "./Wire.js"

const largest = Array.from({ length: 257 }, (_, bits) => (1n << BigInt(bits)) - 1n)

/**
 * Largest value of an unsigned integer of `bits` bits.
 *
 * @example Uint.max(8)
 * // 255n
 */
export const max = (bits: number): bigint => largest[bits] ?? (1n << BigInt(bits)) - 1n

const decimal = /^(?:0|[1-9][0-9]*)$/
const hexadecimal = /^0x[0-9a-fA-F]{1,64}$/
const anyLength = /^-?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)$/

/** Amounts as people write them: `1 ether`, `0.5`, `1e18`, `1,000`. */
const spoken = /^[+-]?[0-9]*[.,_]?[0-9][0-9.,_]*(?:e[+-]?[0-9]+)?(?:\s*[a-z]{2,10})?$/i

/**
 * Message for text that does not fit an integer type such as `uint256`; names the range if the text is an integer.
 *
 * @example Uint.misfit("-1", "uint8")
 * // "expected a non-negative integer as a decimal or 0x-hex string, got \"-1\""
 */
export const misfit = (text: string, type: string): string => {
  const isSigned = type.startsWith("int")
  if (anyLength.test(text) && (isSigned || !text.startsWith("-"))) return `the integer does not fit ${type}`
  const expected = `expected ${isSigned ? "an" : "a non-negative"} integer as a decimal or 0x-hex string`
  const unit = /[^0-9]/.test(text.replace(/^-/, "")) && spoken.test(text)
  return `${expected}, got ${quote(text)}${unit ? "; amounts are whole numbers of the smallest unit, for native value wei" : ""}`
}

/**
 * Decimal or 0x-hex text to an unsigned integer of at most `bits` bits. Signs, fractions, exponents, leading
 * zeros and white space are refused. `Failure` says why.
 *
 * @example Result.getOrThrow(Uint.from("0x10"))
 * // 16n
 */
export const from = (text: string, bits = 256): Result.Result<bigint, InvalidValue> => {
  if (!(decimal.test(text) && text.length <= 78) && !hexadecimal.test(text))
    return Result.fail(invalid(misfit(text, `uint${bits}`)))
  const value = BigInt(text)
  return value <= max(bits) ? Result.succeed(value) : Result.fail(invalid(misfit(text, `uint${bits}`)))
}

const invalid = (message: string) => new InvalidValue({ type: "Uint", message })

/**
 * The JSON-RPC quantity: 0x and hex digits without leading zeros.
 *
 * @example Uint.toQuantity(16n)
 * // "0x10"
 */
export const toQuantity = (value: bigint): string => `0x${value.toString(16)}`

/**
 * The 32-byte big-endian word, 64 hex digits without 0x; modulo 2^256, so always one word.
 *
 * @example Uint.toWord(16n)
 * // "0000000000000000000000000000000000000000000000000000000000000010"
 */
export const toWord = (value: bigint): string => BigInt.asUintN(256, value).toString(16).padStart(64, "0")

/**
 * Whether the integer is an unsigned one of at most `bits` bits.
 *
 * @example Uint.fits(256n, 8)
 * // false
 */
export const fits = (value: bigint, bits: number): boolean => value >= 0n && value <= max(bits)

/**
 * Whether the number is an integer from 0 to 2^48 - 1: Solidity's uint48, in which ERC-4337 keeps Unix seconds.
 *
 * @example Uint.isUint48(2 ** 48)
 * // false
 */
export const isUint48 = (value: number): boolean => Number.isInteger(value) && value >= 0 && value < 2 ** 48

/** Wire codec of a uint256: decimal or 0x-hex string in, decimal string out. */
export const schema: Schema.Codec<bigint, string> = Wire.codec(
  Wire.shown(Schema.String, { pattern: "^(0|[1-9][0-9]*|0x[0-9a-fA-F]{1,64})$" }).annotate({
    identifier: "Uint256"
  }),
  Schema.BigInt,
  from,
  String
)
