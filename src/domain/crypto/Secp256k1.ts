import { secp256k1 } from "@noble/curves/secp256k1"
import * as Result from "effect/Result"
import * as Accelerated from "../primitives/Accelerated.js"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Uint from "../primitives/Uint.js"

/**
 * The curve of Ethereum's keys. A public key is its uncompressed point: 130 lower-case hex digits without 0x, starting
 * with 04. Nothing else in the project computes on the curve.
 */

const Point = secp256k1.ProjectivePoint

/** Number of points, and so one more than the largest private key, r or s. */
export const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** The largest s that Ethereum accepts (EIP-2). */
export const largestS = order >> 1n

/** The prime below which coordinates are. */
const field = 0xfffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2fn

const shape = /^04[0-9a-f]{128}$/

/** True for a point of the curve, y^2 = x^3 + 7, in the form of a public key. */
export const isPublicKey = (text: string): boolean => {
  if (!shape.test(text)) return false
  const [x, y] = [BigInt(`0x${text.slice(2, 66)}`), BigInt(`0x${text.slice(66)}`)]
  return x < field && y < field && (y * y - x * x * x - 7n) % field === 0n
}

/** The address of a public key: the last 20 bytes of the hash of its two coordinates. */
export const addressOf = (publicKey: string): Address.Address =>
  Address.fromWord(Keccak.hash(Hex.unsafe(`0x${publicKey.slice(2)}`)))

/** True for a valid r or s: 1 to the order less one. */
const inRange = (value: bigint): boolean => value > 0n && value < order

/** The public key of a compressed or uncompressed point in hex digits; otherwise null. */
export const fromPoint = (digits: string): string | null =>
  /^(?:0[23][0-9a-f]{64}|04[0-9a-f]{128})$/.test(digits)
    ? Result.getOrNull(Result.try(() => Point.fromHex(digits).toHex(false)))
    : null

/** r and s in their ranges, s in the lower half, and which of the two points of this r it was: 27 even, 28 odd. */
export interface Signature {
  readonly r: bigint
  readonly s: bigint
  readonly v: 27 | 28
}

/** r || s || v, 65 bytes. */
export const serialize = ({ r, s, v }: Signature): Hex.Hex =>
  Hex.unsafe(`0x${Uint.toWord(r)}${Uint.toWord(s)}${v.toString(16)}`)

const bytesOf = (r: bigint, s: bigint): Uint8Array =>
  Hex.toBytes(Hex.unsafe(`0x${Uint.toWord(r)}${Uint.toWord(s)}`))

const halves = (signature: Uint8Array): { readonly r: bigint; readonly s: bigint } => ({
  r: BigInt(Hex.fromBytes(signature.subarray(0, 32))),
  s: BigInt(Hex.fromBytes(signature.subarray(32)))
})

/** Modulo the order, as RFC 6979 specifies; libsecp256k1 leaves this to its callers. */
const reduced = (digest: Hex.Bytes32): Uint8Array =>
  Hex.toBytes(BigInt(digest) < order ? digest : Hex.unsafe(`0x${Uint.toWord(BigInt(digest) - order)}`))

/** A private key in this process. */
export interface PrivateKey {
  readonly publicKey: string
  /** Deterministic (RFC 6979), with s in the lower half. */
  readonly sign: (digest: Hex.Bytes32) => Signature
}

/** The key of these 32 bytes, which are 1 to the order less one. */
export const privateKey = (bytes: Hex.Bytes32): Result.Result<PrivateKey, string> => {
  if (!inRange(BigInt(bytes))) return Result.fail("expected 1 to the order of secp256k1 less one")
  const digits = bytes.slice(2)
  return Result.succeed({
    publicKey: Point.fromPrivateKey(digits).toHex(false),
    sign: (digest) => {
      const native = Accelerated.implementations().secp256k1
      if (native !== null) {
        const { odd, signature } = native.sign(reduced(digest), Hex.toBytes(bytes))
        return { ...halves(signature), v: odd ? 28 : 27 }
      }
      const { r, recovery, s } = secp256k1.sign(digest.slice(2), digits)
      return { r, s, v: recovery === 1 ? 28 : 27 }
    }
  })
}

/** The public key that signed; null without such a key, or with s in the upper half. About 1.5 ms in JavaScript. */
export const recover = (digest: Hex.Bytes32, { r, s, v }: Signature): string | null => {
  if (!inRange(r) || !inRange(s) || s > largestS) return null
  const native = Accelerated.implementations().secp256k1
  if (native !== null) {
    const point = native.recover(Hex.toBytes(digest), bytesOf(r, s), v === 28)
    return point === null ? null : Hex.fromBytes(point).slice(2)
  }
  return Result.getOrNull(
    Result.try(() =>
      new secp256k1.Signature(r, s)
        .addRecoveryBit(v - 27)
        .recoverPublicKey(digest.slice(2))
        .toHex(false)
    )
  )
}

/** The address that signed; null as with `recover`. */
export const recoverAddress = (digest: Hex.Bytes32, signature: Signature): Address.Address | null => {
  const publicKey = recover(digest, signature)
  return publicKey === null ? null : addressOf(publicKey)
}

/**
 * The signature as r || s || v, 65 bytes, with s in the lower half and v 27 or 28; null when the key did not make it over
 * this digest. The claimed v is tried first.
 */
export const prove = (
  publicKey: string,
  digest: Hex.Bytes32,
  { r, s, v: claimed }: { readonly r: bigint; readonly s: bigint; readonly v?: 27 | 28 }
): Hex.Hex | null => {
  const low = s > largestS ? order - s : s
  const each = claimed === 28 ? ([28, 27] as const) : ([27, 28] as const)
  const v = each.find((parity) => recover(digest, { r, s: low, v: parity }) === publicKey)
  return v === undefined ? null : serialize({ r, s: low, v })
}
