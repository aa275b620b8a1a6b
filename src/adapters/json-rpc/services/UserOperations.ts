import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Uint from "../../../domain/primitives/Uint.js"

/** Bytes `from` to `to` of a byte string. */
const slice = (hex: Hex.Hex, from: number, to?: number): Hex.Hex =>
  Hex.unsafe(`0x${hex.slice(2 + from * 2, to === undefined ? undefined : 2 + to * 2)}`)

const quantityAt = (hex: Hex.Hex, from: number, to: number): string =>
  Uint.toQuantity(BigInt(slice(hex, from, to)))

/** `0x` means none of it: bundlers take the members' absence for that. */
const factory = ({ initCode }: UserOperation) =>
  initCode === Hex.empty ? {} : { factory: slice(initCode, 0, 20), factoryData: slice(initCode, 20) }

const paymaster = ({ paymasterAndData }: UserOperation) =>
  paymasterAndData === Hex.empty
    ? {}
    : {
        paymaster: slice(paymasterAndData, 0, 20),
        paymasterVerificationGasLimit: quantityAt(paymasterAndData, 20, 36),
        paymasterPostOpGasLimit: quantityAt(paymasterAndData, 36, 52),
        paymasterData: slice(paymasterAndData, 52)
      }

/**
 * The op as the JSON of ERC-7769: from v0.7 on initCode and paymasterAndData in their parts, in v0.6 whole. Takes ops that
 * fit the EntryPoint (`UserOperation.fits`).
 */
export const toJson = (version: Version, op: UserOperation): Readonly<Record<string, string>> => ({
  sender: op.sender,
  nonce: Uint.toQuantity(op.nonce),
  callData: op.callData,
  callGasLimit: Uint.toQuantity(op.callGasLimit),
  verificationGasLimit: Uint.toQuantity(op.verificationGasLimit),
  preVerificationGas: Uint.toQuantity(op.preVerificationGas),
  maxFeePerGas: Uint.toQuantity(op.maxFeePerGas),
  maxPriorityFeePerGas: Uint.toQuantity(op.maxPriorityFeePerGas),
  signature: op.signature,
  ...(version === "v0.6"
    ? { initCode: op.initCode, paymasterAndData: op.paymasterAndData }
    : { ...factory(op), ...paymaster(op) })
})
