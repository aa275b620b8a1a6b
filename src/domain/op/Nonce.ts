import type * as Address from "../evm/Address.js"
import type * as Hex from "../evm/Hex.js"
import * as Keccak from "../evm/Keccak.js"
import * as Words from "../evm/Words.js"

/**
 * Nonces of ERC-4337: the high 192 bits are a key, the low 64 a sequence that the EntryPoint counts per
 * (wallet, key). Ops of different keys are independent of each other.
 */

/** key << 64 | sequence. Both are reduced to their widths of 192 and 64 bits. */
export const make = (key: bigint, sequence: bigint): bigint =>
  (BigInt.asUintN(192, key) << 64n) | BigInt.asUintN(64, sequence)

/** The 192-bit key. */
export const keyOf = (nonce: bigint): bigint => BigInt.asUintN(192, nonce >> 64n)

/** The 64-bit sequence. */
export const sequenceOf = (nonce: bigint): bigint => BigInt.asUintN(64, nonce)

const getNonce = Keccak.selector("getNonce(address,uint192)")

/** Calldata by which the EntryPoint is asked for the next nonce of a wallet's key; it answers one word. */
export const question = (wallet: Address.Address, key: bigint): Hex.Hex =>
  Words.call(getNonce, [Words.address(wallet), Words.uint(key, 192)])

/** A range of 192-bit keys, both ends included. */
export interface Keys {
  readonly from: bigint
  readonly to: bigint
}

/** Keys of ops that the service signs itself. Few, because the first op of a key costs 15k gas more than later ones. */
export const serviceKeys: Keys = { from: 0n, to: 15n }

/** Keys of ops that are handed out for signing elsewhere, to be submitted by the signer that the caller named. */
export const handedOutKeys: Keys = { from: 16n, to: 32_767n }

/** Keys of ops that are handed out while nobody is named who submits. */
export const anonymousKeys: Keys = { from: 32_768n, to: 65_535n }
