import { EntryPointSpec, type Version } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import * as Uint from "../../../domain/primitives/Uint.js"

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
  ...EntryPointSpec[version].rpc.write(op)
})
