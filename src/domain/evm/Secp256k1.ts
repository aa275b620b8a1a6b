import * as Either from "effect/Either"
import { SigningKey } from "ethers/crypto"
import * as Address from "./Address.js"
import * as Hex from "./Hex.js"
import * as Keccak from "./Keccak.js"
import * as Uint from "./Uint.js"

/** The curve of Ethereum's keys. A public key is its uncompressed point: 130 lower-case hex digits without 0x, starting with 04. */

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

/** True for what r and s may be: 1 to the order less one. */
const inRange = (value: bigint): boolean => value > 0n && value < order

/** Who has signed; null when nobody can have. About 1.5 ms. */
const recover = (digest: Hex.Bytes32, r: string, s: string, v: 27 | 28): string | null =>
  Either.getOrNull(
    Either.try(() => SigningKey.recoverPublicKey(digest, { r: `0x${r}`, s: `0x${s}`, v }).slice(2))
  )

/**
 * r || s || v, 65 bytes, with s in the lower half and v 27 or 28, of a signature by this key over this digest; null
 * when the key did not make it. v is found by trial.
 */
export const proven = (
  publicKey: string,
  digest: Hex.Bytes32,
  signature: { readonly r: bigint; readonly s: bigint }
): Hex.Hex | null => {
  if (!inRange(signature.r) || !inRange(signature.s)) return null
  const r = Uint.toWord(signature.r)
  const s = Uint.toWord(signature.s > largestS ? order - signature.s : signature.s)
  for (const v of [27, 28] as const)
    if (recover(digest, r, s, v) === publicKey) return Hex.unsafe(`0x${r}${s}${v.toString(16)}`)
  return null
}
