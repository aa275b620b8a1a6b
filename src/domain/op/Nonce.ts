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

/** Keys of ops that the service signs itself. Few, because the first op of a key costs 15k gas more than later ones. */
export const serviceKeys: ReadonlyArray<bigint> = Array.from({ length: 16 }, (_, key) => BigInt(key))

/** Keys of ops that are handed out for signing elsewhere, both ends included. */
export const handedOutKeys: { readonly first: bigint; readonly last: bigint } = {
  first: 16n,
  last: 65_535n
}

/** Whether ops that the service signs itself use this key. */
export const isServiceKey = (key: bigint): boolean => key >= 0n && key < handedOutKeys.first

/** Whether ops that are handed out use this key. */
export const isHandedOutKey = (key: bigint): boolean =>
  key >= handedOutKeys.first && key <= handedOutKeys.last
