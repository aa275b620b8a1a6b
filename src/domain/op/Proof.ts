import * as Either from "effect/Either"
import type * as Address from "../evm/Address.js"
import * as Hex from "../evm/Hex.js"
import * as Keccak from "../evm/Keccak.js"
import { largestS, order, recoverAddress } from "../evm/Secp256k1.js"

/**
 * The ECDSA form of a proof: r (32 bytes) || s (32) || v (1), once or up to 16 times in any order, all over the
 * same signing hash, each over the hash itself or over its EIP-191 form.
 */

/** Bytes of one signature. */
const part = 65

/** Most signatures of one proof. */
export const maxParts = 16

interface Part {
  readonly r: string
  readonly s: string
  readonly v: number
}

const partsOf = (proof: Hex.Hex): ReadonlyArray<Part> => {
  const parts: Array<Part> = []
  for (let at = 2; at + 2 * part <= proof.length; at += 2 * part)
    parts.push({
      r: proof.slice(at, at + 64),
      s: proof.slice(at + 64, at + 128),
      v: Number.parseInt(proof.slice(at + 128, at + 130), 16)
    })
  return parts
}

const problemOf = ({ r, s, v }: Part): string | undefined => {
  const [rValue, sValue] = [BigInt(`0x${r}`), BigInt(`0x${s}`)]
  if (rValue === 0n || rValue >= order) return "r is not between 1 and the order of secp256k1"
  if (sValue === 0n || sValue >= order) return "s is not between 1 and the order of secp256k1"
  if (sValue > largestS) return "s is in the upper half: only the low form of a signature is accepted"
  return v === 0 || v === 1 || v === 27 || v === 28 ? undefined : `v is ${v}, expected 27 or 28 (or 0 or 1)`
}

/**
 * The proof as the wallets accept it: every v 27 or 28 (0 and 1 are raised). `Left` says what is wrong: not
 * 65 bytes 1 to 16 times, r or s out of range, s in the upper half, another v.
 */
export const normalise = (proof: Hex.Hex): Either.Either<Hex.Hex, string> => {
  const size = Hex.size(proof)
  if (size === 0 || size % part !== 0 || size > part * maxParts)
    return Either.left(
      `expected 1 to ${maxParts} signatures of ${part} bytes (r, s, v), but the proof has ${size} bytes`
    )
  let text = "0x"
  for (const [index, each] of partsOf(proof).entries()) {
    const problem = problemOf(each)
    if (problem !== undefined) return Either.left(`signature ${index}: ${problem}`)
    text += each.r + each.s + (each.v < 27 ? each.v + 27 : each.v).toString(16)
  }
  return Either.right(Hex.unsafe(text))
}

/** What a wallet's `personal_sign` signs for these 32 bytes: keccak256 of the EIP-191 prefix for 32 bytes and them. */
export const eip191 = (hash: Hex.Bytes32): Hex.Bytes32 => Keccak.hash(Hex.concat(prefix, hash))

const prefix = Hex.unsafe(
  `0x19${Array.from("Ethereum Signed Message:\n32", (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("")}`
)

/** Who has signed `hash` with this signature; null when it is nobody's. */
const recover = (hash: Hex.Bytes32, { r, s, v }: Part): Address.Address | null => {
  const even = v === 27 || v === 0
  if (!even && v !== 28 && v !== 1) return null
  return recoverAddress(hash, { r: BigInt(`0x${r}`), s: BigInt(`0x${s}`), v: even ? 27 : 28 })
}

/**
 * For every signature of a normalised proof, in order, the address it recovers to over the signing hash itself and
 * over its EIP-191 form; null where it recovers to nothing, as with s in the upper half. Either may be the signer:
 * compare with the wallet's owners. About 1.5 ms per address.
 */
export const ecdsaSigners = (
  signingHash: Hex.Bytes32,
  proof: Hex.Hex
): ReadonlyArray<readonly [raw: Address.Address | null, personal: Address.Address | null]> => {
  const personal = eip191(signingHash)
  return partsOf(proof).map((each) => [recover(signingHash, each), recover(personal, each)])
}

/** The x of secp256k1's generator: a valid r in which no byte is zero, so calldata costs what it does for real. */
const dummyR = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"

/**
 * A proof of `count` (1 to 16) signatures for gas estimation: of the real length, accepted by the curve, low s, no
 * zero byte, each different, and by nobody.
 */
export const dummyEcdsa = (count: number): Hex.Hex => {
  const parts = Math.min(Math.max(Math.trunc(count) || 1, 1), maxParts)
  return Hex.unsafe(
    `0x${Array.from({ length: parts }, (_, index) => `${dummyR}${(largestS - BigInt(index)).toString(16)}1b`).join("")}`
  )
}
