import * as Data from "effect/Data"
import * as Result from "effect/Result"
import { decodeRlp } from "ethers/utils"
import * as Secp256k1 from "../crypto/Secp256k1.js"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Rlp from "../primitives/Rlp.js"
import * as Uint from "../primitives/Uint.js"

/**
 * A transaction of type 2 (EIP-1559) with an empty access list, or one of type 0 that is bound to its chain (EIP-155).
 * EIP-2681 bounds the nonce to 2^64 - 2, the chain the other figures; encoding takes any uint256.
 */
export interface Transaction {
  readonly chainId: bigint
  readonly nonce: bigint
  /** True: type 0, and both prices are its gas price. */
  readonly legacy: boolean
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

/** Bytes that are not a signed transaction of these kinds. */
export class MalformedTransaction extends Data.TaggedError("MalformedTransaction")<{
  readonly reason: string
}> {}

/** Bytes of calldata from which on a transaction is longer than the 128 KiB that nodes take into their pools. */
export const maxDataBytes = 130_048

/** EIP-2718 type of EIP-1559. */
const type = "0x02" as Hex.Hex

/** RLP's scalar: big-endian without leading zeros, no bytes at all for zero. */
const scalar = (value: bigint): Hex.Hex => {
  if (value === 0n) return Hex.empty
  const digits = BigInt.asUintN(256, value).toString(16)
  return Hex.unsafe(`0x${digits.length % 2 === 0 ? digits : `0${digits}`}`)
}

type Fields = ReadonlyArray<Rlp.Item>

const payment = (tx: Transaction): Fields => [
  scalar(tx.gasLimit),
  Hex.unsafe(tx.to),
  scalar(tx.value),
  tx.data
]

const legacyFields = (tx: Transaction): Fields => [scalar(tx.nonce), scalar(tx.maxFeePerGas), ...payment(tx)]

const fields = (tx: Transaction): Fields => [
  scalar(tx.chainId),
  scalar(tx.nonce),
  scalar(tx.maxPriorityFeePerGas),
  scalar(tx.maxFeePerGas),
  ...payment(tx),
  []
]

const envelope = (payload: Fields): Hex.Hex => Hex.concat(type, Rlp.encode(payload))

/** The sender's signing digest: keccak256(0x02 || rlp(fields)), or keccak256(rlp(fields, chainId, 0, 0)) if legacy. */
export const signingDigest = (tx: Transaction): Hex.Bytes32 =>
  Keccak.hash(
    tx.legacy
      ? Rlp.encode([...legacyFields(tx), scalar(tx.chainId), Hex.empty, Hex.empty])
      : envelope(fields(tx))
  )

/**
 * The bytes for `eth_sendRawTransaction`: 0x02 || rlp(fields, yParity, r, s), or rlp(fields, v, r, s) of a legacy
 * one with v = 35 + 2 * chainId + yParity. `signature` is r || s || v over the signing digest, 65 bytes, v 27 or 28.
 */
export const serialize = (tx: Transaction, signature: Hex.Hex): Hex.Hex => {
  const odd = signature.slice(130) === "1c"
  const r = scalar(BigInt(signature.slice(0, 66)))
  const s = scalar(BigInt(`0x${signature.slice(66, 130)}`))
  return tx.legacy
    ? Rlp.encode([...legacyFields(tx), scalar(tx.chainId * 2n + (odd ? 36n : 35n)), r, s])
    : envelope([...fields(tx), odd ? Hex.unsafe("0x01") : Hex.empty, r, s])
}

/** The transaction's hash, from its signed bytes. */
export const hash = (raw: Hex.Hex): Hex.Bytes32 => Keccak.hash(raw)

interface Unverified {
  readonly transaction: Transaction
  readonly odd: boolean
  readonly r: bigint
  readonly s: bigint
}

/** The parts of an RLP list by their place; missing parts are empty. */
const list = (raw: string) => {
  const items = decodeRlp(raw)
  const bytes = (at: number): string => {
    const item = items[at]
    return typeof item === "string" ? item : "0x"
  }
  const integer = (at: number): bigint => (bytes(at) === "0x" ? 0n : BigInt(bytes(at)))
  return { bytes, integer }
}

const readLegacy = (raw: Hex.Hex): Unverified => {
  const { bytes, integer } = list(raw)
  const v = integer(6)
  return {
    transaction: {
      chainId: v < 37n ? 0n : (v - 35n) / 2n,
      nonce: integer(0),
      legacy: true,
      maxPriorityFeePerGas: integer(1),
      maxFeePerGas: integer(1),
      gasLimit: integer(2),
      to: Address.unsafe(bytes(3)),
      value: integer(4),
      data: Hex.unsafe(bytes(5))
    },
    odd: v % 2n === 0n,
    r: integer(7),
    s: integer(8)
  }
}

const readMarket = (raw: Hex.Hex): Unverified => {
  const { bytes, integer } = list(`0x${raw.slice(4)}`)
  return {
    transaction: {
      chainId: integer(0),
      nonce: integer(1),
      legacy: false,
      maxPriorityFeePerGas: integer(2),
      maxFeePerGas: integer(3),
      gasLimit: integer(4),
      to: Address.unsafe(bytes(5)),
      value: integer(6),
      data: Hex.unsafe(bytes(7))
    },
    odd: bytes(9) === "0x01",
    r: integer(10),
    s: integer(11)
  }
}

const read = (raw: Hex.Hex): Signed | string => {
  const { odd, r, s, transaction } = raw.startsWith(type) ? readMarket(raw) : readLegacy(raw)
  const signature = Hex.unsafe(`0x${Uint.toWord(r)}${Uint.toWord(s)}${odd ? "1c" : "1b"}`)
  if (serialize(transaction, signature) !== raw)
    return "not the encoding of a signed transaction of type 2 or 0"
  if (transaction.chainId === 0n) return "it names no chain"
  if (s > Secp256k1.largestS) return "s is in the upper half"
  const from = Secp256k1.recoverAddress(signingDigest(transaction), { r, s, v: odd ? 28 : 27 })
  if (from === null) return "not a valid signature"
  return { transaction, from, hash: hash(raw) }
}

/**
 * Signed bytes to the transaction and its sender. Only what `serialize` writes is taken: no access list, no
 * leading zeros, nothing behind, no legacy transaction of any chain (v 27 and 28).
 */
export const parse = (raw: Hex.Hex): Result.Result<Signed, MalformedTransaction> =>
  Result.try({
    try: () => read(raw),
    catch: () => "not RLP, or not a valid signature"
  }).pipe(
    Result.flatMap((result) => (typeof result === "string" ? Result.fail(result) : Result.succeed(result))),
    Result.mapError((reason) => new MalformedTransaction({ reason }))
  )
