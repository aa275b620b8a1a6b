import * as Result from "effect/Result"
import type * as P256 from "../crypto/P256.js"
import { largestS, order, recoverAddress } from "../crypto/Secp256k1.js"
import type * as Address from "../primitives/Address.js"
import * as Base64 from "../primitives/Base64.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"
import type { WalletConfig } from "../wallet/WalletConfig.js"
import * as Conditions from "./Conditions.js"
import * as PasskeyProof from "./PasskeyProof.js"
import * as WebAuthn from "./WebAuthn.js"

/**
 * Signers of an op. The ECDSA form of a proof is r (32 bytes) || s (32) || v (1), once or up to 16 times in any order,
 * each over the signing hash itself or over its EIP-191 form; with passkeys it is the ABI form of `PasskeyProof`. The
 * forms cannot be confused: 65 * k is not a multiple of 32 for any k up to 16. All parts are over the same signing hash.
 */

export type PasskeyPart = PasskeyProof.PasskeyPart
/** The parts of a proof: r, s and v of signers, one after the other, and signatures of passkeys. */
export type Parts = PasskeyProof.Parts

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

/** Bytes of one signature in the compact form of EIP-2098: r, and s with the parity of v in its highest bit. */
const compactPart = 64

/** The sizes of signatures cannot be confused either: 65 * k is not a multiple of 64 for any k up to 16. */
const isCompact = (ecdsa: Hex.Hex): boolean => {
  const size = Hex.size(ecdsa)
  return size > 0 && size % compactPart === 0 && size <= compactPart * maxParts
}

/** The first word of every proof with passkeys: the offset of `ecdsa`. As an r it would need an unknown key. */
const abiHead = `0x${"40".padStart(64, "0")}`

const top = 1n << 255n

/** Signatures of 64 bytes in 65. */
const expanded = (compact: Hex.Hex): Hex.Hex => {
  let text = "0x"
  for (let at = 2; at < compact.length; at += 2 * compactPart) {
    const ofV = BigInt(`0x${compact.slice(at + 64, at + 128)}`)
    const odd = ofV >= top
    const s = (odd ? ofV - top : ofV).toString(16).padStart(64, "0")
    text += `${compact.slice(at, at + 64)}${s}${odd ? "1c" : "1b"}`
  }
  return Hex.unsafe(text)
}

const isEcdsa = (proof: Hex.Hex): boolean => {
  const size = Hex.size(proof)
  return size > 0 && size % part === 0 && size <= part * maxParts
}

/** Every v 27 or 28 (0 and 1 are raised). */
const normaliseEcdsa = (ecdsa: Hex.Hex): Result.Result<Hex.Hex, string> => {
  let text = "0x"
  for (const [index, each] of partsOf(ecdsa).entries()) {
    const problem = problemOf(each)
    if (problem !== undefined) return Result.fail(`signature ${index}: ${problem}`)
    text += each.r + each.s + (each.v < 27 ? each.v + 27 : each.v).toString(16)
  }
  return Result.succeed(Hex.unsafe(text))
}

/**
 * Number of signatures in these bytes.
 *
 * @example Proof.signatures(Proof.dummyEcdsa(2))
 * // 2
 */
export const signatures = (ecdsa: Hex.Hex): number => Math.floor(Hex.size(ecdsa) / part)

/**
 * The proof of these parts: the ECDSA form when there are no passkeys.
 *
 * @example Proof.encode({ ecdsa: Proof.dummyEcdsa(1), passkeys: [] }) === Proof.dummyEcdsa(1)
 * // true
 */
export const encode = (parts: Parts): Hex.Hex =>
  parts.passkeys.length === 0 && parts.ecdsa !== Hex.empty ? parts.ecdsa : PasskeyProof.encode(parts)

/**
 * The parts of a proof of either form. Only the canonical encoding is one; the parts themselves are not checked.
 *
 * @example Proof.decode(Proof.dummyEcdsa(1))
 * // Result.succeed({ ecdsa: Proof.dummyEcdsa(1), passkeys: [] })
 */
export const decode = (proof: Hex.Hex): Result.Result<Parts, string> => read(proof, (ecdsa) => ecdsa)

const read = (proof: Hex.Hex, written: (ecdsa: Hex.Hex) => Hex.Hex): Result.Result<Parts, string> => {
  if (isEcdsa(proof)) return Result.succeed({ ecdsa: proof, passkeys: [] })
  const size = Hex.size(proof)
  if (size % word !== 0 || size === 0)
    return Result.fail(
      `expected 1 to ${maxParts} signatures of ${part} bytes (r, s, v) or of ${compactPart} (EIP-2098), or the ABI form with passkeys, but the proof has ${size} bytes`
    )
  return Result.filterOrFail(
    Result.map(PasskeyProof.decode(proof), ({ ecdsa, passkeys }) => ({
      ecdsa: written(ecdsa),
      passkeys
    })),
    ({ ecdsa }) => ecdsa === Hex.empty || isEcdsa(ecdsa),
    ({ ecdsa }) =>
      `expected at most ${maxParts} signatures of ${part} bytes (r, s, v), but ecdsa has ${Hex.size(ecdsa)} bytes`
  )
}

const word = 32

const isCompactProof = (proof: Hex.Hex): boolean =>
  isCompact(proof) && (Hex.size(proof) === compactPart || !proof.startsWith(abiHead))

/**
 * The proof as the wallets accept it: every v 27 or 28 (0 and 1 are raised), the ECDSA form where there are no
 * passkeys, and signatures of 65 bytes where all of them have 64. `Failure` names the problem: neither form, r or s out of
 * range, s in the upper half, another v.
 *
 * @example Result.getOrThrow(Result.flip(Proof.normalise(Hex.unsafe("0x00"))))
 * // "expected 1 to 16 signatures of 65 bytes (r, s, v) or of 64 (EIP-2098), or the ABI form with passkeys, but the proof has 1 bytes"
 */
export const normalise = (proof: Hex.Hex): Result.Result<Hex.Hex, string> =>
  Result.flatMap(
    read(isCompactProof(proof) ? expanded(proof) : proof, (ecdsa) =>
      isCompact(ecdsa) ? expanded(ecdsa) : ecdsa
    ),
    ({ ecdsa, passkeys }) =>
      Result.map(normaliseEcdsa(ecdsa), (normal) => encode({ ecdsa: normal, passkeys }))
  )

/**
 * The `personal_sign` digest of these 32 bytes: keccak256 of the EIP-191 prefix for 32 bytes and the bytes.
 *
 * @example Proof.eip191(Hex.unsafe32(`0x${"11".repeat(32)}`))
 * // "0x245a48de257ae28de2b11cb8fc02361fe87a20566dc63bec4492c3854b1aae52"
 */
export const eip191 = (hash: Hex.Bytes32): Hex.Bytes32 => Keccak.hash(Hex.concat(prefix, hash))

const prefix = Hex.unsafe(
  `0x19${Array.from("Ethereum Signed Message:\n32", (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("")}`
)

/**
 * The signer of this hash at this position of an ECDSA proof; null without a signer, as with s in the upper half.
 * About 1.5 ms.
 *
 * @example Proof.signer(Salt.hash("alice"), Hex.unsafe(`0x${"ff".repeat(65)}`), 0)
 * // null
 */
export const signer = (hash: Hex.Bytes32, ecdsa: Hex.Hex, index: number): Address.Address | null => {
  const [only] = partsOf(Hex.unsafe(`0x${ecdsa.slice(2 + 2 * part * index, 2 + 2 * part * (index + 1))}`))
  if (only === undefined) return null
  const { r, s, v } = only
  const even = v === 27 || v === 0
  if (!even && v !== 28 && v !== 1) return null
  return recoverAddress(hash, { r: BigInt(`0x${r}`), s: BigInt(`0x${s}`), v: even ? 27 : 28 })
}

/** The x of secp256k1's generator: a valid r without a zero byte, so calldata has its real cost. */
const dummyR = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"

/**
 * A proof of `count` (1 to 16) signatures for gas estimation: of the real length, accepted by the curve, low s, no
 * zero byte, each different, by no known key.
 *
 * @example Hex.size(Proof.dummyEcdsa(2))
 * // 130
 */
export const dummyEcdsa = (count: number): Hex.Hex => ecdsaDummies(clamp(count, 1))

const clamp = (count: number, least: number): number =>
  Math.min(Math.max(Math.trunc(count) || least, least), maxParts)

const ecdsaDummies = (count: number): Hex.Hex =>
  Hex.unsafe(
    `0x${Array.from({ length: count }, (_, index) => `${dummyR}${(largestS - BigInt(index)).toString(16)}1b`).join("")}`
  )

/** The challenge of dummies, until `challenge` replaces it. */
const placeholder = Base64.encodeUrl(Keccak.hashText("castellan dummy challenge"))

/**
 * The longest client data, in a nonstandard order of members: wallets read all of it, and brackets are the costliest
 * characters of the text that they read one by one.
 */
const dummyJson = (() => {
  const end = `":${"[".repeat(23)}${"]".repeat(23)}, "challenge":"${placeholder}","type":"webauthn.get"}`
  return `{"`.padEnd(WebAuthn.maxClientData - end.length, "o").concat(end)
})()

/** The longest, without a zero byte: user present and verified. */
const dummyAuthenticatorData = Hex.unsafe(
  `0x${"11".repeat(32)}05${"11".repeat(WebAuthn.maxAuthenticatorData - 33)}`
)

/** A valid r and a low s in which no byte is zero: the coordinates of P-256's generator. */
const dummyP256: P256.Signature = {
  r: Hex.unsafe32("0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
  s: Hex.unsafe32("0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")
}

const dummyPasskey = (index: number): PasskeyPart => ({
  index,
  auth: {
    ...dummyP256,
    challengeIndex: BigInt(dummyJson.indexOf('"challenge"')),
    typeIndex: BigInt(dummyJson.indexOf('"type"')),
    authenticatorData: dummyAuthenticatorData,
    clientDataJSON: dummyJson
  }
})

/**
 * A proof for gas estimation with this many owners and passkeys of the configuration: of the real form, as long and
 * costly as possible. Wallets reject it before the curve check unless `challenge` inserts the challenge.
 *
 * @example Hex.size(Proof.dummy(WalletConfig.ecdsa(Address.zero), { owners: 1, passkeys: 0 }))
 * // 65
 */
export const dummy = (
  config: WalletConfig,
  by: { readonly owners: number; readonly passkeys: number }
): Hex.Hex => {
  const passkeys = Math.min(clamp(by.passkeys, 0), config.passkeys.length)
  return encode({
    ecdsa: ecdsaDummies(clamp(by.owners, passkeys === 0 ? 1 : 0)),
    passkeys: Array.from({ length: passkeys }, (_, index) => dummyPasskey(index))
  })
}

/** ASCII text in hex digits. */
const asciiDigits = (text: string): string =>
  Array.from(text, (character) => character.charCodeAt(0).toString(16)).join("")

/**
 * The op's `signature` with the right challenge in its dummies, so that wallets go all the way to the curve. A signature
 * without dummies, and bytes behind the signature, stay unchanged.
 *
 * @example Proof.challenge(Hex.empty, Salt.hash("alice"))
 * // "0x"
 */
export const challenge = (signature: Hex.Hex, userOpHash: Hex.Bytes32): Hex.Hex => {
  const cursor = Words.read(signature)
  const conditions = {
    validUntil: Number(Words.readUint(cursor, 0)),
    validAfter: Number(Words.readUint(cursor, 32)),
    bundler: Words.readAddress(cursor, 64)
  }
  const challenge = Base64.encodeUrl(Conditions.signingHash(userOpHash, conditions))
  return Hex.unsafe(signature.replaceAll(asciiDigits(placeholder), asciiDigits(challenge)))
}
