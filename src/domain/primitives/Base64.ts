import * as Base64 from "effect/encoding/Base64"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Hex from "./Hex.js"

/**
 * Base64 and base64url (RFC 4648, sections 4 and 5). Padding is optional and then complete, unused bits are zero;
 * white space, and digits of both alphabets in one text, are refused: bytes have few spellings.
 */

/** Digits of one alphabet, then padding. No alternative of the pattern can be tried twice for one character. */
const shape = /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}$/

const malformed = "expected base64 or base64url, without white space"

/** Text to bytes; `Failure` says why not. */
export const decode = (text: string): Result.Result<Uint8Array, string> => {
  if (!shape.test(text) || (text.endsWith("=") && text.length % 4 !== 0)) return Result.fail(malformed)
  const plain = text.replaceAll("-", "+").replaceAll("_", "/")
  const padded = plain.padEnd(Math.ceil(plain.length / 4) * 4, "=")
  const bytes = Base64.decode(padded)
  // Encoded again it is another text where unused bits were set.
  return Result.isSuccess(bytes) && Base64.encode(bytes.success) === padded
    ? Result.succeed(bytes.success)
    : Result.fail(malformed)
}

/** Text to bytes in hex; `Failure` says why not. */
export const decodeHex = (text: string): Result.Result<Hex.Hex, string> =>
  Result.map(decode(text), Hex.fromBytes)

/** base64url without padding, as WebAuthn writes challenges. */
export const encodeUrl = (hex: Hex.Hex): string => Base64Url.encode(Hex.toBytes(hex))
