import { p256 } from "@noble/curves/p256"
import * as Result from "effect/Result"
import { sha256 } from "ethers/crypto"
import * as Accelerated from "../primitives/Accelerated.js"
import * as Hex from "../primitives/Hex.js"
import * as Uint from "../primitives/Uint.js"

/** The curve of passkeys, NIST P-256 (secp256r1). Nothing else in the project computes on it. */

/** A point of the curve in affine coordinates. */
export interface PublicKey {
  readonly x: Hex.Bytes32
  readonly y: Hex.Bytes32
}

/** Number of points, and so one more than the largest r or s. */
export const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** The largest s that wallets accept. */
export const largestS = order >> 1n

const { a, b, Fp } = p256.CURVE

/** Whether the coordinates are those of a point, both below the prime. */
export const isPublicKey = ({ x, y }: PublicKey): boolean =>
  Result.isSuccess(Result.try(() => p256.ProjectivePoint.fromHex(`04${x.slice(2)}${y.slice(2)}`)))

/** The point of these hex digits in the form of SEC 1: 04 || X || Y, or 02 or 03 || X; otherwise null. */
export const fromPoint = (digits: string): PublicKey | null => {
  if (!/^(?:04[0-9a-f]{128}|0[23][0-9a-f]{64})$/.test(digits)) return null
  const x = word(digits.slice(2, 66))
  const y = digits.startsWith("04") ? word(digits.slice(66)) : yOf(BigInt(x), digits.startsWith("03"))
  return y !== null && isPublicKey({ x, y }) ? { x, y } : null
}

/** The y of this sign above x. The library's own reader of compressed points rejects x = 0. */
const yOf = (x: bigint, odd: boolean): Hex.Bytes32 | null =>
  Result.match(
    Result.try(() => Fp.sqrt(Fp.create(x ** 3n + a * x + b))),
    {
      onFailure: () => null,
      onSuccess: (root) => word(Uint.toWord((root % 2n === 1n) === odd ? root : Fp.neg(root)))
    }
  )

const word = (digits: string): Hex.Bytes32 => Hex.unsafe32(`0x${digits}`)

/** r and s of a signature, 1 to the order less one each. */
export interface Signature {
  readonly r: Hex.Bytes32
  readonly s: Hex.Bytes32
}

const inRange = (value: bigint): boolean => value > 0n && value < order

/** Whether r and s are in their ranges. */
export const inRanges = ({ r, s }: Signature): boolean => inRange(BigInt(r)) && inRange(BigInt(s))

/** Whether s is in the lower half. */
export const isLow = ({ s }: Signature): boolean => BigInt(s) <= largestS

/** The same signature with s in the lower half. */
export const toLow = (signature: Signature): Signature =>
  isLow(signature) || !inRanges(signature)
    ? signature
    : { r: signature.r, s: word(Uint.toWord(order - BigInt(signature.s))) }

/** Whether the key has signed the SHA-256 of the message; s may be in either half. */
export const verify = (key: PublicKey, message: Hex.Hex, signature: Signature): boolean => {
  if (!inRanges(signature)) return false
  const native = Accelerated.implementations().p256
  return native === null
    ? verified(key, message, signature)
    : native.verify(
        Hex.toBytes(Hex.concat(key.x, key.y)),
        Hex.toBytes(message),
        Hex.toBytes(Hex.concat(signature.r, signature.s))
      )
}

/** False for coordinates off the curve. */
const verified = (key: PublicKey, message: Hex.Hex, signature: Signature): boolean =>
  p256.verify(
    { r: BigInt(signature.r), s: BigInt(signature.s) },
    sha256(message).slice(2),
    `04${key.x.slice(2)}${key.y.slice(2)}`,
    { lowS: false, prehash: false }
  )

/** The position of the key that signed the SHA-256 of the message; otherwise null. */
export const signedBy = (
  keys: ReadonlyArray<PublicKey>,
  message: Hex.Hex,
  signature: Signature
): number | null => {
  const index = keys.findIndex((key) => verify(key, message, signature))
  return index < 0 ? null : index
}
