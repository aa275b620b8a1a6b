import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import { EntryPointSpec, type Version } from "../entrypoint/EntryPointSpec.js"
import type { PaymasterLimits as Limits } from "../entrypoint/Op.js"

/**
 * An op's `paymasterAndData`. v0.6: paymaster (20 bytes) ++ data. From v0.7 on: paymaster (20) ++ gas of its
 * validation (16) ++ gas of its postOp (16) ++ data. Empty when the wallet pays for itself.
 */

export type { Limits }

export interface PaymasterData {
  readonly paymaster: Address.Address
  /** Zero on v0.6, which has none: the paymaster shares the op's verificationGasLimit. */
  readonly limits: Limits
  /** Data that only the paymaster understands. */
  readonly data: Hex.Hex
}

export const noLimits: Limits = { verificationGasLimit: 0n, postOpGasLimit: 0n }

/** Most bytes of data that the service submits: a permit by a passkey has room in it. */
export const maxData = 4_096

/** The service's objection to submitting an op with this data; null: none. */
export const objection = (data: Hex.Hex): string | null =>
  Hex.size(data) > maxData
    ? `expected at most ${maxData} bytes of the paymaster's data, but there are ${Hex.size(data)}`
    : null

/** Limits wider than their field are reduced to it: check with `UserOperation.fits`. v0.6 drops them. */
export const make = (version: Version, { data, limits, paymaster }: PaymasterData): Hex.Hex =>
  Hex.concat(Hex.unsafe(paymaster), EntryPointSpec[version].paymaster.write(limits), data)

/** Its parts; null when it is empty or lacks one of its fixed fields. */
export const read = (version: Version, paymasterAndData: Hex.Hex): PaymasterData | null => {
  const fields = EntryPointSpec[version].paymaster
  if (Hex.size(paymasterAndData) < fields.size) return null
  return {
    paymaster: Address.unsafe(Hex.slice(paymasterAndData, 0, 20)),
    limits: fields.read(paymasterAndData),
    data: Hex.slice(paymasterAndData, fields.size)
  }
}

/** Replaces the data by data of the same length that cost the most as calldata: no byte of them is zero. */
export const dearest = (version: Version, paymasterAndData: Hex.Hex): Hex.Hex => {
  const parts = read(version, paymasterAndData)
  return parts === null
    ? paymasterAndData
    : make(version, { ...parts, data: Hex.unsafe(`0x${"ff".repeat(Hex.size(parts.data))}`) })
}

/** Replaces the limits. v0.6, and data that `read` does not take, stay unchanged. */
export const withLimits = (version: Version, paymasterAndData: Hex.Hex, limits: Limits): Hex.Hex => {
  const parts = read(version, paymasterAndData)
  return parts === null ? paymasterAndData : make(version, { ...parts, limits })
}
