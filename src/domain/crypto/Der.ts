import * as Result from "effect/Result"
import type { Hex } from "../primitives/Hex.js"
import * as P256 from "./P256.js"
import * as Secp256k1 from "./Secp256k1.js"

/**
 * DER of key providers: signatures (ECDSA-Sig-Value of RFC 3279) and public keys (SubjectPublicKeyInfo of
 * RFC 5480). Every value has exactly one form here; any other spelling of it is refused.
 */

const [integer, bitString, objectId, sequence] = ["02", "03", "06", "30"] as const

interface Element {
  readonly tag: string
  /** Hex digits. */
  readonly body: string
  /** The digits after it. */
  readonly rest: string
}

/** The least size that needs one byte behind the first, and two; no key or signature has 64 KiB. */
const leastIn = new Map([
  [1, 0x80],
  [2, 0x100]
])

/** Size of the body, and of its length field; null unless the length has its shortest form. */
const lengthOf = (digits: string): readonly [size: number, bytes: number] | null => {
  const first = Number.parseInt(digits.slice(0, 2), 16)
  if (first < 0x80) return [first, 1]
  const bytes = first - 0x80
  const size = Number.parseInt(digits.slice(2, 2 + 2 * bytes), 16)
  return size >= (leastIn.get(bytes) ?? Number.POSITIVE_INFINITY) ? [size, 1 + bytes] : null
}

/** The first element, if it has this tag and is complete. */
const read = (digits: string, tag: string): Element | null => {
  if (digits.slice(0, 2) !== tag) return null
  const length = lengthOf(digits.slice(2))
  if (length === null) return null
  const [size, bytes] = length
  const start = 2 + 2 * bytes
  const end = start + 2 * size
  return end > digits.length ? null : { tag, body: digits.slice(start, end), rest: digits.slice(end) }
}

/** The body of the element, if the digits are exactly one. */
const only = (digits: string, tag: string): string | null => {
  const element = read(digits, tag)
  return element === null || element.rest !== "" ? null : element.body
}

/** A positive integer of at most 32 bytes, without a leading zero byte that its sign does not need. */
const positive = (body: string): bigint | null => {
  if (!/^(?:00[89a-f]|0[1-9a-f]|[1-7])/.test(body)) return null
  const digits = body.startsWith("00") ? body.slice(2) : body
  return digits.length > 64 ? null : BigInt(`0x${digits}`)
}

/** A provider's signature; the caller checks that r and s are below the order. */
export interface Signature {
  readonly r: bigint
  readonly s: bigint
}

/** SEQUENCE { r INTEGER, s INTEGER }, both 1 to 2^256 - 1. */
export const signature = (der: Hex): Result.Result<Signature, string> => {
  const body = only(der.slice(2), sequence)
  const first = body === null ? null : read(body, integer)
  const second = first === null ? null : only(first.rest, integer)
  if (first === null || second === null) return Result.fail("expected a DER sequence of two integers")
  const [r, s] = [positive(first.body), positive(second)]
  return r === null || s === null
    ? Result.fail("expected r and s as positive integers of at most 32 bytes, in their shortest form")
    : Result.succeed({ r, s })
}

/** id-ecPublicKey, 1.2.840.10045.2.1. */
const ecPublicKey = "2a8648ce3d0201"

/** 1.3.132.0.10. */
const secp256k1 = "2b8104000a"

/** prime256v1, 1.2.840.10045.3.1.7. */
const prime256v1 = "2a8648ce3d030107"

/**
 * - `malformed`: no SubjectPublicKeyInfo in DER, or no point of the curve that it names
 * - `otherKind`: a key of another algorithm or curve
 */
export type PublicKeyProblem = "malformed" | "otherKind"

/** SEQUENCE { SEQUENCE { id-ecPublicKey, curve }, BIT STRING of the point }: the point's hex digits. */
const pointOf = (der: Hex, curve: string): Result.Result<string, PublicKeyProblem> => {
  const body = only(der.slice(2), sequence)
  const algorithm = body === null ? null : read(body, sequence)
  const id = algorithm === null ? null : read(algorithm.body, objectId)
  const bits = algorithm === null ? null : only(algorithm.rest, bitString)
  if (id === null || !bits?.startsWith("00")) return Result.fail("malformed")
  return id.body === ecPublicKey && only(id.rest, objectId) === curve
    ? Result.succeed(bits.slice(2))
    : Result.fail("otherKind")
}

/** SubjectPublicKeyInfo of a secp256k1 key, its point uncompressed: the point, in the form of `Secp256k1`. */
export const publicKey = (der: Hex): Result.Result<string, PublicKeyProblem> =>
  Result.flatMap(pointOf(der, secp256k1), (point) =>
    Secp256k1.isPublicKey(point) ? Result.succeed(point) : Result.fail("malformed")
  )

/** SubjectPublicKeyInfo of a P-256 key, its point uncompressed or compressed. */
export const p256PublicKey = (der: Hex): Result.Result<P256.PublicKey, PublicKeyProblem> =>
  Result.flatMap(pointOf(der, prime256v1), (point) => {
    const key = P256.fromPoint(point)
    return key === null ? Result.fail("malformed") : Result.succeed(key)
  })
