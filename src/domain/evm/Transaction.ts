import * as Data from "effect/Data"
import * as Either from "effect/Either"
import { SigningKey } from "ethers/crypto"
import { decodeRlp, encodeRlp } from "ethers/utils"
import * as Address from "./Address.js"
import * as Hex from "./Hex.js"
import * as Keccak from "./Keccak.js"
import * as Uint from "./Uint.js"

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
  readonly to: Address.Address
  /** Wei. */
  readonly value: bigint
  readonly data: Hex.Hex
}

/** A transaction with its sender's signature. */
export interface Signed {
  readonly transaction: Transaction
  readonly from: Address.Address
  readonly hash: Hex.Bytes32
}

/** Bytes that are no signed transaction of this kind. */
export class MalformedTransaction extends Data.TaggedError("MalformedTransaction")<{
  readonly reason: string
}> {}

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

/** Half of the order of secp256k1: EIP-2 forbids an s above it. */
const maxS = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

const read = (raw: Hex.Hex): Signed | string => {
  const items = decodeRlp(`0x${raw.slice(4)}`)
  const bytes = (at: number): string => {
    const item = items[at]
    return typeof item === "string" ? item : "0x"
  }
  const integer = (at: number): bigint => (bytes(at) === "0x" ? 0n : BigInt(bytes(at)))
  const transaction: Transaction = {
    chainId: integer(0),
    nonce: integer(1),
    maxPriorityFeePerGas: integer(2),
    maxFeePerGas: integer(3),
    gasLimit: integer(4),
    to: Address.unsafe(bytes(5)),
    value: integer(6),
    data: Hex.unsafe(bytes(7))
  }
  const v = bytes(9) === "0x01" ? 28n : 27n
  const s = integer(11)
  const signature = Hex.unsafe(`0x${Uint.toWord(integer(10))}${Uint.toWord(s)}${v.toString(16)}`)
  if (serialize(transaction, signature) !== raw) return "not the encoding of a signed EIP-1559 transaction"
  if (s > maxS) return "s is in the upper half"
  const publicKey = SigningKey.recoverPublicKey(signingDigest(transaction), signature)
  const from = Address.fromWord(Keccak.hash(Hex.unsafe(`0x${publicKey.slice(4)}`)))
  return { transaction, from, hash: hash(raw) }
}

/**
 * Signed bytes to the transaction and its sender. Only what `serialize` writes is taken: no access list, no
 * leading zeros, nothing behind.
 */
export const parse = (raw: Hex.Hex): Either.Either<Signed, MalformedTransaction> =>
  Either.try({
    try: () => read(raw),
    catch: () => "not RLP, or not a signature that anybody made"
  }).pipe(
    Either.flatMap((result) => (typeof result === "string" ? Either.left(result) : Either.right(result))),
    Either.mapLeft((reason) => new MalformedTransaction({ reason }))
  )
