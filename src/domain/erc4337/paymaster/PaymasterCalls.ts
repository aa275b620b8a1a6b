import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"

/** The EntryPoint's calls of a paymaster, made of its call of the wallet: so they are of the same version. */

const structV06 = "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
const structPacked = "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"

const validateV06 = Keccak.selector(`validateUserOp(${structV06},bytes32,uint256)`)
const approveV06 = Keccak.selector(`validatePaymasterUserOp(${structV06},bytes32,uint256)`)
const approvePacked = Keccak.selector(`validatePaymasterUserOp(${structPacked},bytes32,uint256)`)
const postOpV06 = Keccak.selector("postOp(uint8,bytes,uint256)")
const postOpPacked = Keccak.selector("postOp(uint8,bytes,uint256,uint256)")

const isV06 = (validateCall: Hex.Hex): boolean => validateCall.slice(0, 10) === validateV06

/** Where the third argument is in the hex text. */
const third = { from: 2 + 2 * 68, to: 2 + 2 * 100 }

/** `validateUserOp(op, userOpHash, missingAccountFunds)` with another third argument. */
export const withMissing = (validateCall: Hex.Hex, missing: bigint): Hex.Hex =>
  Hex.unsafe(`${validateCall.slice(0, third.from)}${Words.uint(missing)}${validateCall.slice(third.to)}`)

/** `validatePaymasterUserOp(op, userOpHash, maxCost)`: the arguments of `validateUserOp` but for the third. */
export const approve = (validateCall: Hex.Hex, maxCost: bigint): Hex.Hex =>
  Hex.unsafe(
    `${isV06(validateCall) ? approveV06 : approvePacked}${withMissing(validateCall, maxCost).slice(10)}`
  )

/** What it answers: what the paymaster wants to be given in postOp, empty: none, and ERC-4337 validation data. */
export const readApproval = (
  answer: Hex.Hex
): { readonly context: Hex.Hex; readonly validationData: bigint } | null => {
  if (Hex.size(answer) < 96) return null
  const cursor = Words.read(answer)
  return { context: Words.readBytes(cursor, 0), validationData: Words.readUint(cursor, 32) }
}

/** `postOp` after a call that succeeded. */
export const postOp = (
  validateCall: Hex.Hex,
  context: Hex.Hex,
  actualGasCost: bigint,
  feePerGas: bigint
): Hex.Hex => {
  const shared = [Words.uint(0n), Words.bytes(context), Words.uint(actualGasCost)]
  return isV06(validateCall)
    ? Words.call(postOpV06, shared)
    : Words.call(postOpPacked, [...shared, Words.uint(feePerGas)])
}
