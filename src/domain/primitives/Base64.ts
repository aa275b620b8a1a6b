import * as Either from "effect/Either"
import * as Hex from "./Hex.js"

/**
 * Base64 and base64url (RFC 4648, sections 4 and 5). Padding is optional and then complete, unused bits are zero;
 * white space, and digits of both alphabets in one text, are refused: bytes have few spellings.
 */

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/** The value of a digit's character code; 62 and 63 in both alphabets. */
const values = new Map(
  Array.from(`${letters}+/`, (digit, value): readonly [number, number] => [
    digit.charCodeAt(0),
    value
  ]).concat([
    ["-".charCodeAt(0), 62],
    ["_".charCodeAt(0), 63]
  ])
)

/** Digits of one alphabet, then padding. No alternative of the pattern can be tried twice for one character. */
const shape = /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)(={0,2})$/

const malformed = "expected base64 or base64url, without white space"

/** Text to bytes; `Left` says why not. */
export const decode = (text: string): Either.Either<Uint8Array, string> => {
  const padding = shape.exec(text)?.[1]?.length
  if (padding === undefined) return Either.left(malformed)
  const digits = text.length - padding
  const rest = digits % 4
  if (rest === 1 || (padding > 0 && text.length % 4 !== 0)) return Either.left(malformed)
  const bytes = new Uint8Array(Math.floor((digits * 3) / 4))
  let [bits, held, at] = [0, 0, 0]
  for (let index = 0; index < digits; index++) {
    bits = ((bits << 6) | (values.get(text.charCodeAt(index)) ?? 0)) & 0xffff
    held += 6
    if (held >= 8) {
      held -= 8
      bytes[at++] = (bits >> held) & 0xff
    }
  }
  return (bits & ((1 << held) - 1)) === 0 ? Either.right(bytes) : Either.left(malformed)
}

/** Text to bytes in hex; `Left` says why not. */
export const decodeHex = (text: string): Either.Either<Hex.Hex, string> =>
  Either.map(decode(text), Hex.fromBytes)

/** base64url without padding, as WebAuthn writes challenges. */
export const encodeUrl = (hex: Hex.Hex): string => {
  const alphabet = `${letters}-_`
  let text = ""
  for (let at = 2; at < hex.length; at += 6) {
    const group = hex.slice(at, at + 6)
    const bits = Number.parseInt(group.padEnd(6, "0"), 16)
    for (let digit = 0; digit <= group.length / 2; digit++)
      text += alphabet.charAt((bits >> (18 - 6 * digit)) & 63)
  }
  return text
}
