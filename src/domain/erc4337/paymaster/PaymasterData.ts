import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Uint from "../../primitives/Uint.js"
import type { Version } from "../EntryPoint.js"

/**
 * An op's `paymasterAndData`. v0.6: paymaster (20 bytes) ++ data. From v0.7 on: paymaster (20) ++ gas of its
 * validation (16) ++ gas of its postOp (16) ++ data. Empty when the wallet pays for itself.
 */

/** Gas that the paymaster's own frames are given; a uint128 each, of which the EntryPoint takes a uint120. */
export interface Limits {
  readonly verificationGasLimit: bigint
  readonly postOpGasLimit: bigint
}

export interface PaymasterData {
  readonly paymaster: Address.Address
  /** Zero on v0.6, which has none: the paymaster shares the op's verificationGasLimit. */
  readonly limits: Limits
  /** What the paymaster alone understands. */
  readonly data: Hex.Hex
}

export const noLimits: Limits = { verificationGasLimit: 0n, postOpGasLimit: 0n }

/** Bytes in front of the data. */
const fixed = (version: Version): number => (version === "v0.6" ? 20 : 52)

/** Most bytes of data that the service submits: a permit by a passkey has room in it. */
export const maxData = 4_096

/** Why the service submits no op with so much data; null: nothing against it. */
export const objection = (data: Hex.Hex): string | null =>
  Hex.size(data) > maxData
    ? `expected at most ${maxData} bytes of the paymaster's data, but there are ${Hex.size(data)}`
    : null

/** The bytes from `from` on, up to `to`. */
const slice = (hex: Hex.Hex, from: number, to?: number): Hex.Hex =>
  Hex.unsafe(`0x${hex.slice(2 + from * 2, to === undefined ? undefined : 2 + to * 2)}`)

const limit = (value: bigint): Hex.Hex => Hex.unsafe(`0x${Uint.toWord(BigInt.asUintN(128, value)).slice(32)}`)

const uint = (hex: Hex.Hex): bigint => BigInt(hex)

/** Limits wider than their field are reduced to it: `UserOperation.fits` says whether they are. v0.6 drops them. */
export const make = (version: Version, { data, limits, paymaster }: PaymasterData): Hex.Hex =>
  version === "v0.6"
    ? Hex.concat(Hex.unsafe(paymaster), data)
    : Hex.concat(
        Hex.unsafe(paymaster),
        limit(limits.verificationGasLimit),
        limit(limits.postOpGasLimit),
        data
      )

/** Its parts; null when it is empty or lacks one of its fixed fields. */
export const read = (version: Version, paymasterAndData: Hex.Hex): PaymasterData | null => {
  const at = fixed(version)
  if (Hex.size(paymasterAndData) < at) return null
  return {
    paymaster: Address.unsafe(slice(paymasterAndData, 0, 20)),
    limits:
      version === "v0.6"
        ? noLimits
        : {
            verificationGasLimit: uint(slice(paymasterAndData, 20, 36)),
            postOpGasLimit: uint(slice(paymasterAndData, 36, 52))
          },
    data: slice(paymasterAndData, at)
  }
}

/** The same with data of the same length that cost the most as calldata: no byte of them is zero. */
export const dearest = (version: Version, paymasterAndData: Hex.Hex): Hex.Hex => {
  const parts = read(version, paymasterAndData)
  return parts === null
    ? paymasterAndData
    : make(version, { ...parts, data: Hex.unsafe(`0x${"ff".repeat(Hex.size(parts.data))}`) })
}

/** The same with other limits. v0.6, and what `read` does not take, stay as they are. */
export const withLimits = (version: Version, paymasterAndData: Hex.Hex, limits: Limits): Hex.Hex => {
  const parts = read(version, paymasterAndData)
  return parts === null ? paymasterAndData : make(version, { ...parts, limits })
}
