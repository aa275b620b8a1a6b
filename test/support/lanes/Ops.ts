import type { UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../journal/Make.js"

/** An op of a journal test wallet without calls, with 1 for every gas field. */
export const plain: UserOperation = {
  sender: Make.address(0xa1),
  nonce: 0n,
  initCode: Hex.empty,
  callData: Hex.empty,
  callGasLimit: 1n,
  verificationGasLimit: 1n,
  preVerificationGas: 1n,
  maxFeePerGas: 1n,
  maxPriorityFeePerGas: 1n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty
}
