import * as Result from "effect/Result"
import { largestS } from "../../crypto/Secp256k1.js"
import * as Eip712 from "../../evm/Eip712.js"
import type * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Uint from "../../primitives/Uint.js"
import * as Words from "../../primitives/Words.js"
import { EntryPointSpec, type Version } from "../entrypoint/EntryPointSpec.js"
import * as PaymasterData from "./PaymasterData.js"

/**
 * The terms that the SponsorPaymaster (`contracts/src/SponsorPaymaster.sol`) reads from an op that it pays for. Its
 * paymasterAndData contains the time window, and is part of userOpHash like every other field:
 *
 *   paymaster (20) ++ [from v0.7 on: limits (16 + 16)] ++ validUntil (6) ++ validAfter (6) ++ [0x01 when unbound]
 *
 * The sponsor signs the userOpHash and the EOA that submits, or the zero address when the sponsorship is unbound. Its
 * signature is the last 65 bytes of the op's `signature`, behind the wallet's own: nothing that the owner signs depends
 * on it, and it can be added last.
 */
export interface Terms {
  readonly paymaster: Address.Address
  /** Last Unix second at which it pays, uint48; 0: no bound. */
  readonly validUntil: number
  /** First Unix second at which it pays, uint48; 0: no bound. */
  readonly validAfter: number
  /** Without meaning on v0.6. */
  readonly limits: PaymasterData.Limits
  /**
   * Whether any EOA may submit the op. Anyone who sees such a sponsorship can use it: it is for bundlers that submit from
   * their own EOAs.
   */
  readonly unbound: boolean
}

/** Behind the window of a sponsorship that names no submitter. */
const unboundMark = Hex.unsafe("0x01")

/** Bytes of the window. */
const windowSize = 12

/** A time as its six bytes. */
const time = (value: number): Hex.Hex => Hex.unsafe(`0x${value.toString(16).padStart(12, "0")}`)

/** The op's paymasterAndData. Times outside uint48 make a window that never opens, not an unbounded window. */
export const paymasterData = (version: Version, terms: Terms): Hex.Hex => {
  const exist = Uint.isUint48(terms.validUntil) && Uint.isUint48(terms.validAfter)
  const [until, after] = exist ? [terms.validUntil, terms.validAfter] : [1, 2 ** 48 - 1]
  const { limits, paymaster, unbound } = terms
  const data = Hex.concat(time(until), time(after), unbound ? unboundMark : Hex.empty)
  return PaymasterData.make(version, { paymaster, limits, data })
}

/** The terms of a paymasterAndData without extra bytes. It does not show whether the paymaster is a sponsor. */
export const read = (version: Version, paymasterAndData: Hex.Hex): Result.Result<Terms, string> => {
  const fields = EntryPointSpec[version].paymaster
  const parts = PaymasterData.read(version, paymasterAndData)
  const mark = parts?.data.slice(2 + 2 * windowSize) ?? ""
  if (parts === null || Hex.size(parts.data) < windowSize || !(mark === "" || `0x${mark}` === unboundMark))
    return Result.fail(
      `expected ${fields.names}, validUntil and validAfter: ${fields.size + windowSize} bytes, and 0x01 when any EOA may submit`
    )
  return Result.succeed({
    paymaster: parts.paymaster,
    limits: parts.limits,
    validUntil: Number.parseInt(parts.data.slice(2, 14), 16),
    validAfter: Number.parseInt(parts.data.slice(14, 26), 16),
    unbound: mark !== ""
  })
}

const typeHash = Keccak.hashText("Sponsorship(bytes32 userOpHash,address bundler)")
const domain = Eip712.domain("castellan", "1")

/**
 * The sponsor's signing digest: EIP-712 of `Sponsorship(bytes32 userOpHash,address bundler)` in the domain
 * ("castellan", "1", chainId, paymaster). `bundler` is the EOA that submits (tx.origin), zero when the terms are unbound.
 */
export const digest = (
  { chainId, paymaster }: { readonly chainId: bigint; readonly paymaster: Address.Address },
  userOpHash: Hex.Bytes32,
  bundler: Address.Address
): Hex.Bytes32 =>
  Eip712.digest(
    domain(chainId, paymaster),
    Eip712.hashStruct(typeHash, [Words.bytes32(userOpHash), Words.address(bundler)])
  )

/** Bytes of the sponsor's signature: r (32) || s (32, low) || v (1, 27 or 28). */
export const tail = 65

/** The op's `signature` with the sponsor's, 65 bytes, behind the wallet's own. */
export const append = (signature: Hex.Hex, sponsor: Hex.Hex): Hex.Hex => Hex.concat(signature, sponsor)

/** The wallet's own signature and the sponsor's behind it. `Failure` when there is no room for one. */
export const split = (
  signature: Hex.Hex
): Result.Result<{ readonly signature: Hex.Hex; readonly sponsor: Hex.Hex }, string> => {
  const cut = signature.length - 2 * tail
  return cut < 2
    ? Result.fail(`expected the sponsor's ${tail} bytes behind the wallet's signature`)
    : Result.succeed({
        signature: Hex.unsafe(signature.slice(0, cut)),
        sponsor: Hex.unsafe(`0x${signature.slice(cut)}`)
      })
}

/**
 * A sponsor's signature for gas estimation: of the real length and cost, without a zero byte, by no known key. r is the
 * x of secp256k1's generator.
 */
export const dummy: Hex.Hex = Hex.unsafe(
  `0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798${largestS.toString(16)}1b`
)
