import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Hex from "./Hex.js"

/**
 * Base64 and base64url (RFC 4648, sections 4 and 5). Padding is optional and then complete, unused bits are zero;
 * white space, and digits of both alphabets in one text, are refused: bytes have few spellings.
 */

/** Digits of one alphabet, then padding. No alternative of the pattern can be tried twice for one character. */
const shape = /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}$/

const malformed = "expected base64 or base64url, without white space"

/** Text to bytes; `Left` says why not. */
export const decode = (text: string): Either.Either<Uint8Array, string> => {
  if (!shape.test(text) || (text.endsWith("=") && text.length % 4 !== 0)) return Either.left(malformed)
  const plain = text.replaceAll("-", "+").replaceAll("_", "/")
  const padded = plain.padEnd(Math.ceil(plain.length / 4) * 4, "=")
  const bytes = Encoding.decodeBase64(padded)
  // Encoded again it is another text where unused bits were set.
  return Either.isRight(bytes) && Encoding.encodeBase64(bytes.right) === padded
    ? Either.right(bytes.right)
    : Either.left(malformed)
}

/** Text to bytes in hex; `Left` says why not. */
export const decodeHex = (text: string): Either.Either<Hex.Hex, string> =>
  Either.map(decode(text), Hex.fromBytes)

/** base64url without padding, as WebAuthn writes challenges. */
export const encodeUrl = (hex: Hex.Hex): string => Encoding.encodeBase64Url(Hex.toBytes(hex))
