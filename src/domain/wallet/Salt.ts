import type * as Brand from "effect/Brand"
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Hex from "../primitives/Hex.js"
import { InvalidValue } from "../primitives/InvalidValue.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Wire from "../primitives/Wire.js"

/** Text that names a wallet: well-formed Unicode in NFC, 1 to 256 UTF-8 bytes. Case matters. */
export type Salt = string & Brand.Brand<"Salt">

/** The API's text for a salt that breaks a rule. */
export const invalid = "invalid salt format"

/** Most UTF-8 bytes of a salt. */
export const maxBytes = 256

const loneSurrogate = /\p{Surrogate}/u
const controlCharacter = /\p{Cc}/u

/**
 * Text to a salt; invalid text is refused, never repaired. 1 to 256 UTF-8 bytes, without lone surrogates, control
 * characters (Unicode category Cc) or white space at the ends (as ECMAScript trims, the byte order mark included). NFC
 * only: two salts that look the same must not give two wallets. Format characters (Cf: joiners, direction marks) are
 * allowed inside: scripts and emoji need them.
 *
 * @example Result.getOrThrow(Salt.from("alice"))
 * // "alice"
 */
export const from = (text: string): Result.Result<Salt, InvalidValue> =>
  isSalt(text) ? Result.succeed(text) : Result.fail(new InvalidValue({ type: "Salt", message: invalid }))

// The length goes first, so that no later check reads a megabyte. A UTF-16 unit takes at least a byte of UTF-8.
const isSalt = (text: string): text is Salt =>
  text.length > 0 &&
  text.length <= maxBytes &&
  !loneSurrogate.test(text) &&
  utf8Size(text) <= maxBytes &&
  !controlCharacter.test(text) &&
  text.trim() === text &&
  text.normalize("NFC") === text

/** UTF-8 bytes of well-formed text. */
const utf8Size = (text: string): number => {
  let size = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    size += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
  }
  return size
}

/**
 * keccak256 of the salt's UTF-8 bytes.
 *
 * @example Salt.hash(Result.getOrThrow(Salt.from("alice")))
 * // "0x9c0257114eb9399a2985f8e75dad7600c5d89fe3824ffa99ec1c3eb8bf3b0501"
 */
export const hash = (salt: Salt): Hex.Bytes32 => Keccak.hashText(salt)

/** Wire codec. */
export const schema: Schema.Codec<Salt, string> = Wire.codec(
  Wire.shown(Schema.String, { minLength: 1, maxLength: maxBytes }).annotate({ identifier: "Salt" }),
  Schema.String.pipe(
    Schema.refine((text) => isSalt(text)),
    Schema.brand("Salt")
  ),
  from,
  identity
)
