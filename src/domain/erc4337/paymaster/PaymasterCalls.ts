import * as Hex from "../../primitives/Hex.js"
import * as Words from "../../primitives/Words.js"
import { EntryPointSpec, latest } from "../entrypoint/EntryPointSpec.js"
import type { Functions } from "../entrypoint/Spec.js"

/** The EntryPoint's calls of a paymaster, made from its call of the wallet, and so of the same version. */

const bySelector: ReadonlyMap<string, Functions> = new Map(
  Object.values(EntryPointSpec).map(({ functions }) => [functions.validateUserOp, functions])
)

/** The functions of the version with this call of the wallet; otherwise the latest version's. */
const functionsOf = (validateCall: Hex.Hex): Functions =>
  bySelector.get(validateCall.slice(0, 10)) ?? latest.functions

/** Place of the third argument in the hex text. */
const third = { from: 2 + 2 * 68, to: 2 + 2 * 100 }

/** `validateUserOp(op, userOpHash, missingAccountFunds)` with another third argument. */
export const withMissing = (validateCall: Hex.Hex, missing: bigint): Hex.Hex =>
  Hex.unsafe(`${validateCall.slice(0, third.from)}${Words.uint(missing)}${validateCall.slice(third.to)}`)

/** `validatePaymasterUserOp(op, userOpHash, maxCost)`: the arguments of `validateUserOp` but for the third. */
export const approve = (validateCall: Hex.Hex, maxCost: bigint): Hex.Hex =>
  Hex.unsafe(
    `${functionsOf(validateCall).validatePaymasterUserOp}${withMissing(validateCall, maxCost).slice(10)}`
  )

/** Its answer: the paymaster's context for postOp, empty for no postOp, and ERC-4337 validation data. */
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
): Hex.Hex => functionsOf(validateCall).postOp(context, actualGasCost, feePerGas)
