import { encodeRlp } from "ethers/utils"
import type { Address } from "./Address.js"
import * as Hex from "./Hex.js"
import * as Keccak from "./Keccak.js"

/**
 * A transaction of type 2 (EIP-1559), with an empty access list. EIP-2681 bounds the nonce to 2^64 - 2, the chain
 * the other figures; encoding takes any uint256.
 */
export interface Transaction {
  readonly chainId: bigint
  readonly nonce: bigint
  /** Wei per gas unit. */
  readonly maxPriorityFeePerGas: bigint
  /** Wei per gas unit. */
  readonly maxFeePerGas: bigint
  readonly gasLimit: bigint
  readonly to: Address
  /** Wei. */
  readonly value: bigint
  readonly data: Hex.Hex
}

/** EIP-2718 type of EIP-1559. */
const type = "0x02" as Hex.Hex

/** RLP's scalar: big-endian without leading zeros, no bytes at all for zero. */
const scalar = (value: bigint): string => {
  if (value === 0n) return "0x"
  const digits = BigInt.asUintN(256, value).toString(16)
  return `0x${digits.length % 2 === 0 ? digits : `0${digits}`}`
}

const fields = (tx: Transaction): Array<string | Array<string>> => [
  scalar(tx.chainId),
  scalar(tx.nonce),
  scalar(tx.maxPriorityFeePerGas),
  scalar(tx.maxFeePerGas),
  scalar(tx.gasLimit),
  tx.to,
  scalar(tx.value),
  tx.data,
  []
]

const envelope = (payload: Array<string | Array<string>>): Hex.Hex =>
  Hex.concat(type, Hex.unsafe(encodeRlp(payload)))

/** What the sender signs: keccak256(0x02 || rlp(fields)). */
export const signingDigest = (tx: Transaction): Hex.Bytes32 => Keccak.hash(envelope(fields(tx)))

/**
 * The bytes for `eth_sendRawTransaction`: 0x02 || rlp(fields, yParity, r, s). `signature` is r || s || v over the
 * signing digest, 65 bytes, v 27 or 28.
 */
export const serialize = (tx: Transaction, signature: Hex.Hex): Hex.Hex =>
  envelope([
    ...fields(tx),
    signature.slice(130) === "1c" ? "0x01" : "0x",
    scalar(BigInt(signature.slice(0, 66))),
    scalar(BigInt(`0x${signature.slice(66, 130)}`))
  ])

/** The transaction's hash, from its signed bytes. */
export const hash = (raw: Hex.Hex): Hex.Bytes32 => Keccak.hash(raw)
