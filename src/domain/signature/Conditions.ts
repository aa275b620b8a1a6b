import * as Result from "effect/Result"
import * as Eip712 from "../evm/Eip712.js"
import * as Address from "../primitives/Address.js"
import type * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Uint from "../primitives/Uint.js"
import * as Words from "../primitives/Words.js"

/** Conditions of a signed op; its wallet enforces them. */
export interface Conditions {
  /** Last Unix second at which the op may be executed, uint48; 0: no bound. */
  readonly validUntil: number
  /** First Unix second at which the op may be executed, uint48; 0: no bound. */
  readonly validAfter: number
  /** The only EOA (tx.origin) that may submit the op; the zero address: any. */
  readonly bundler: Address.Address
}

/** No conditions: any EOA may submit the op at any time. */
export const none: Conditions = { validUntil: 0, validAfter: 0, bundler: Address.zero }

/**
 * Whether they restrict nothing, so that the signing hash is the userOpHash itself.
 *
 * @example Conditions.isNone(Conditions.none)
 * // true
 */
export const isNone = (conditions: Conditions): boolean =>
  conditions.validUntil === 0 && conditions.validAfter === 0 && conditions.bundler === Address.zero

/** Numbers outside uint48 must not turn into 0, which is "no bound": they make conditions that never hold. */
const window = ({ validUntil, validAfter }: Conditions): readonly [until: string, after: string] =>
  Uint.isUint48(validUntil) && Uint.isUint48(validAfter)
    ? [Words.uint(BigInt(validUntil)), Words.uint(BigInt(validAfter))]
    : [Words.uint(1n), Words.uint(Uint.max(48))]

const typeHash = Keccak.hashText(
  "Conditions(bytes32 userOpHash,uint48 validUntil,uint48 validAfter,address bundler)"
)

/** A constant: userOpHash binds chain, EntryPoint and wallet already. */
const domainSeparator = Eip712.hashStruct(Keccak.hashText("EIP712Domain(string name,string version)"), [
  Words.bytes32(Keccak.hashText("castellan")),
  Words.bytes32(Keccak.hashText("1"))
])

/**
 * A proof's signing hash: `userOpHash` itself without conditions, otherwise the EIP-712 digest of
 * `Conditions(bytes32 userOpHash,uint48 validUntil,uint48 validAfter,address bundler)` in the domain
 * `EIP712Domain(string name,string version)` of ("castellan", "1"). Times outside uint48 are signed as a window that
 * never opens.
 *
 * @example Conditions.signingHash(Hex.unsafe32(`0x${"11".repeat(32)}`), Conditions.none)
 * // "0x1111111111111111111111111111111111111111111111111111111111111111"
 */
export const signingHash = (userOpHash: Hex.Bytes32, conditions: Conditions): Hex.Bytes32 =>
  isNone(conditions)
    ? userOpHash
    : Eip712.digest(
        domainSeparator,
        Eip712.hashStruct(typeHash, [
          Words.bytes32(userOpHash),
          ...window(conditions),
          Words.address(conditions.bundler)
        ])
      )

/**
 * The op's `signature`: abi.encode(uint48 validUntil, uint48 validAfter, address bundler, bytes proof). Times outside
 * uint48 are encoded as a window that never opens.
 *
 * @example Hex.size(Conditions.encodeSignature(Conditions.none, Hex.empty))
 * // 160
 */
export const encodeSignature = (conditions: Conditions, proof: Hex.Hex): Hex.Hex =>
  Words.encode([...window(conditions), Words.address(conditions.bundler), Words.bytes(proof)])

/**
 * The conditions and the proof of an op's `signature`. Only the canonical encoding is one.
 *
 * @example Conditions.decodeSignature(Conditions.encodeSignature(Conditions.none, Hex.empty))
 * // Result.succeed({ conditions: Conditions.none, proof: Hex.empty })
 */
export const decodeSignature = (
  signature: Hex.Hex
): Result.Result<{ readonly conditions: Conditions; readonly proof: Hex.Hex }, string> => {
  const cursor = Words.read(signature)
  const conditions: Conditions = {
    validUntil: Number(Words.readUint(cursor, 0)),
    validAfter: Number(Words.readUint(cursor, 32)),
    bundler: Words.readAddress(cursor, 64)
  }
  const proof = Words.readBytes(cursor, 96)
  return encodeSignature(conditions, proof) === signature
    ? Result.succeed({ conditions, proof })
    : Result.fail("expected abi.encode(uint48 validUntil, uint48 validAfter, address bundler, bytes proof)")
}
