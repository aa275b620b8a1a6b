import * as Result from "effect/Result"
import * as Hex from "../primitives/Hex.js"
import * as Words from "../primitives/Words.js"
import * as WebAuthn from "./WebAuthn.js"

/**
 * The ABI form of a proof, Solidity's `struct MixedProof`: abi.encode(bytes ecdsa, PasskeyProof[] passkeys) with
 * PasskeyProof (uint8 index, (bytes32 r, bytes32 s, uint256 challengeIndex, uint256 typeIndex, bytes authenticatorData,
 * string clientDataJSON) auth).
 */

/** The assertion of one passkey. */
export interface PasskeyPart {
  /** Position of its key in the configuration's `passkeys`, uint8. */
  readonly index: number
  readonly auth: WebAuthn.Auth
}

/** The parts of a proof, all over the same signing hash. */
export interface Parts {
  /** r || s || v of 65 bytes each, concatenated, or empty. */
  readonly ecdsa: Hex.Hex
  readonly passkeys: ReadonlyArray<PasskeyPart>
}

/** Most assertions of one proof: most passkeys of a wallet. */
export const maxPasskeys = 16

/** Most bytes of a proof: 16 signatures, and 16 assertions of the longest kind with their heads. */
const maxSize =
  32 * 4 + 1056 + maxPasskeys * (32 * 11 + WebAuthn.maxAuthenticatorData + WebAuthn.maxClientData)

/** A number outside uint8 becomes 255, which no wallet has. */
const uint8 = (value: number): string =>
  Words.uint(Number.isInteger(value) && value >= 0 && value < 256 ? BigInt(value) : 255n)

const part = ({ auth, index }: PasskeyPart): Words.Part =>
  Words.dynamic([
    uint8(index),
    Words.dynamic([
      Words.bytes32(auth.r),
      Words.bytes32(auth.s),
      Words.uint(auth.challengeIndex),
      Words.uint(auth.typeIndex),
      Words.bytes(auth.authenticatorData),
      Words.bytes(WebAuthn.clientDataOf(auth))
    ])
  ])

/** abi.encode(ecdsa, passkeys). */
export const encode = ({ ecdsa, passkeys }: Parts): Hex.Hex =>
  Words.encode([Words.bytes(ecdsa), Words.array(passkeys.map(part))])

const readPart = (cursor: Words.Cursor): PasskeyPart | null => {
  const auth = Words.readTail(cursor, 32)
  const clientDataJSON = WebAuthn.textOf(Hex.toBytes(Words.readBytes(auth, 160)))
  return clientDataJSON === null
    ? null
    : {
        index: Number(Words.readUint(cursor, 0)),
        auth: {
          r: Words.readBytes32(auth, 0),
          s: Words.readBytes32(auth, 32),
          challengeIndex: Words.readUint(auth, 64),
          typeIndex: Words.readUint(auth, 96),
          authenticatorData: Words.readBytes(auth, 128),
          clientDataJSON
        }
      }
}

const malformed =
  "expected abi.encode(bytes ecdsa, PasskeyProof[] passkeys), or signatures of 65 bytes (r, s, v)"

/** The parts. Only the canonical encoding is one. */
export const decode = (proof: Hex.Hex): Result.Result<Parts, string> => {
  const size = Hex.size(proof)
  if (size > maxSize) return Result.fail(`expected a proof of at most ${maxSize} bytes, but it has ${size}`)
  const cursor = Words.read(proof)
  const { count, elements } = Words.readArray(cursor, 32)
  if (count > maxPasskeys)
    return Result.fail(`expected at most ${maxPasskeys} passkeys, but there are ${count}`)
  const passkeys: Array<PasskeyPart> = []
  for (let at = 0; at < count; at++) {
    const read = readPart(Words.readTail(elements, 32 * at))
    if (read === null) return Result.fail(`passkey ${at}: expected clientDataJSON in UTF-8`)
    passkeys.push(read)
  }
  const parts = { ecdsa: Words.readBytes(cursor, 0), passkeys }
  return encode(parts) === proof ? Result.succeed(parts) : Result.fail(malformed)
}
