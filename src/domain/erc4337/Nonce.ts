import type * as Address from "../primitives/Address.js"
import type * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"

/**
 * Nonces of ERC-4337: the high 192 bits are a key, the low 64 a sequence that the EntryPoint counts per
 * (wallet, key). Ops of different keys are independent of each other.
 *
 * The wallets demand that the high 64 bits of the key are their epoch: the number of their earlier configurations.
 * userOpHash covers the nonce, so a signature counts only under the configuration that it was made for.
 */

/** key << 64 | sequence. Both are reduced to their widths of 192 and 64 bits. */
export const make = (key: bigint, sequence: bigint): bigint =>
  (BigInt.asUintN(192, key) << 64n) | BigInt.asUintN(64, sequence)

/** The 192-bit key. */
export const keyOf = (nonce: bigint): bigint => BigInt.asUintN(192, nonce >> 64n)

/** The 64-bit sequence. */
export const sequenceOf = (nonce: bigint): bigint => BigInt.asUintN(64, nonce)

/** The configuration that the nonce names: 64 bits, 0 for the first one. */
export const epochOf = (nonce: bigint): bigint => BigInt.asUintN(64, nonce >> 192n)

const getNonce = Keccak.selector("getNonce(address,uint192)")

/** Calldata that reads the next nonce of a wallet's key from the EntryPoint; `answered` decodes the result. */
export const getNonceCall = (wallet: Address.Address, key: bigint): Hex.Hex =>
  Words.call(getNonce, [Words.address(wallet), Words.uint(key, 192)])

/**
 * The sequence of the next op of the key, from the answer to `question`: one word, the whole nonce with the key above its
 * 64 bits. Null: no such answer.
 */
export const ofAnswer = ({
  data,
  success
}: {
  readonly data: Hex.Hex
  readonly success: boolean
}): bigint | null => (success && data.length === 66 ? sequenceOf(BigInt(data)) : null)

/** A range of 192-bit keys, both ends included. */
export interface Keys {
  readonly from: bigint
  readonly to: bigint
}

/** These keys of epoch 0 in another epoch. */
export const inEpoch = ({ from, to }: Keys, epoch: bigint): Keys => {
  const high = BigInt.asUintN(64, epoch) << 128n
  return { from: high | from, to: high | to }
}

/** Keys, in epoch 0, of ops that the service signs itself. Few, because the first op of a key costs 15k gas more than later ones. */
export const serviceKeys: Keys = { from: 0n, to: 15n }

/** Keys, in epoch 0, of ops for signing elsewhere, submitted by the signer that the caller named. */
export const handedOutKeys: Keys = { from: 16n, to: 32_767n }

/** Keys, in epoch 0, of ops for signing elsewhere, without a named submitter. */
export const anonymousKeys: Keys = { from: 32_768n, to: 65_535n }
