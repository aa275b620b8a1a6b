import * as Result from "effect/Result"
import * as Cose from "../crypto/Cose.js"
import * as Der from "../crypto/Der.js"
import * as P256 from "../crypto/P256.js"
import * as Base64 from "../primitives/Base64.js"
import * as Hex from "../primitives/Hex.js"

/**
 * P-256 public keys as callers send them: base64 or base64url of X || Y (64 bytes), 04 || X || Y (65), a compressed
 * point (33), SubjectPublicKeyInfo in DER, or a COSE_Key in CBOR. Two entries of 32 bytes are X and Y of one key.
 */

/** The index of the invalid entry, and its problem. */
export interface Problem {
  readonly index: number
  readonly message: string
}

const offCurve = "the coordinates are of no point of the curve P-256"

/** Longest text that is decoded: every encoding of a key is far below. */
const maxLength = 1024

const ofDer = (der: Hex.Hex): Result.Result<P256.PublicKey, string> =>
  Result.mapError(Der.p256PublicKey(der), (problem) =>
    problem === "otherKind"
      ? "the DER is a key of another algorithm or curve than P-256"
      : "the DER is not a SubjectPublicKeyInfo of a P-256 point"
  )

const ofCose = (cbor: Hex.Hex): Result.Result<P256.PublicKey, string> =>
  Result.mapError(Cose.p256PublicKey(cbor), (problem) =>
    problem === "otherKind"
      ? "the COSE_Key is of another type, curve or algorithm than ES256 on P-256"
      : "the CBOR is not a COSE_Key of a P-256 point"
  )

const ofPoint = (digits: string): Result.Result<P256.PublicKey, string> => {
  const key = P256.fromPoint(digits)
  return key === null ? Result.fail(offCurve) : Result.succeed(key)
}

const expected =
  "expected X || Y (64 bytes), 04 || X || Y (65), a compressed point (33), SubjectPublicKeyInfo in DER or a COSE_Key in CBOR"

/** The first byte of a DER sequence. */
const derStart = /^30/
/** The first byte of a CBOR map. */
const cborStart = /^[ab]/

const ofBytes = (bytes: Hex.Hex): Result.Result<P256.PublicKey, string> => {
  const [digits, size] = [bytes.slice(2), Hex.size(bytes)]
  if (size === 64) return ofPoint(`04${digits}`)
  if ((size === 65 && digits.startsWith("04")) || (size === 33 && /^0[23]/.test(digits)))
    return ofPoint(digits)
  if (size === 32) return Result.fail("32 bytes are one coordinate: the only two entries are then X and Y")
  if (derStart.test(digits)) return ofDer(bytes)
  return cborStart.test(digits) ? ofCose(bytes) : Result.fail(`${expected}, but the entry has ${size} bytes`)
}

const decode = (text: string): Result.Result<Hex.Hex, string> =>
  text.length > maxLength ? Result.fail(`expected at most ${maxLength} characters`) : Base64.decodeHex(text)

/**
 * The keys, in the order given, none of them twice; for none the empty list.
 *
 * @example Passkey.parse([])
 * // Result.succeed([])
 */
export const parse = (
  entries: ReadonlyArray<string>
): Result.Result<ReadonlyArray<P256.PublicKey>, Problem> =>
  Result.gen(function* () {
    const at =
      (index: number) =>
      (message: string): Problem => ({ index, message })
    const decoded: Array<Hex.Hex> = []
    for (const [index, entry] of entries.entries())
      decoded.push(yield* Result.mapError(decode(entry), at(index)))
    const [x, y] = decoded
    if (decoded.length === 2 && x !== undefined && y !== undefined && decoded.every(isCoordinate))
      return [yield* Result.mapError(ofPoint(`04${x.slice(2)}${y.slice(2)}`), at(0))]
    const keys: Array<P256.PublicKey> = []
    const first = new Map<string, number>()
    for (const [index, bytes] of decoded.entries()) {
      const key = yield* Result.mapError(ofBytes(bytes), at(index))
      const before = first.get(key.x + key.y)
      if (before !== undefined) yield* Result.fail(at(index)(`entry ${before} is the same key`))
      first.set(key.x + key.y, index)
      keys.push(key)
    }
    return keys
  })

const isCoordinate = (bytes: Hex.Hex): boolean => Hex.size(bytes) === 32
