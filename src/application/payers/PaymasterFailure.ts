import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as EntryPointReason from "../../domain/erc4337/EntryPointReason.js"
import { EntryPointSpec } from "../../domain/erc4337/entrypoint/EntryPointSpec.js"
import * as GasLens from "../../domain/erc4337/gas/GasLens.js"
import * as PaymasterData from "../../domain/erc4337/paymaster/PaymasterData.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"

/** Stages where the paymaster fails, with the EntryPoint's message for the paymaster's own revert data. */
const reasons = { paymaster: "AA33 reverted", postOp: "AA50 postOp reverted" } as const

const blame = (paymaster: Address.Address, what: string): string => `paymaster ${paymaster}: ${what}`

/**
 * One-line reason for an op's failure in a simulation. It names the paymaster if that failed, and has the EntryPoint's
 * code, which `revert` returns for the EntryPoint's own data.
 */
export const message = (
  paymaster: Address.Address | null,
  { data, stage }: Pick<GasLens.Measure, "data" | "stage">,
  revert: (data: Hex.Hex) => string
): string => {
  const own = revert(data)
  if (paymaster === null || (stage !== "paymaster" && stage !== "postOp")) return own
  return blame(paymaster, /^AA[0-9]{2} /.test(own) ? own : `${reasons[stage]}: ${own}`)
}

const refusal = (paymaster: Address.Address, reason: string): string => {
  const { meaning, remedy } = EntryPointReason.find(reason) ?? { meaning: "", remedy: "" }
  return blame(paymaster, `${reason}: ${meaning}; ${remedy}`)
}

/**
 * The paymaster's refusal although nothing reverted; null: it pays, or the answer is unknown. Only a paymaster without
 * data answers the same for the measured and the sent op: a signature is made later.
 */
export const objection = (
  version: Version,
  op: UserOperation,
  measure: Pick<GasLens.Measure, "paymasterData">,
  timestamp: bigint
): string | null => {
  const parts = PaymasterData.read(version, op.paymasterAndData)
  if (parts === null || parts.data !== Hex.empty) return null
  const { authorizer, validAfter, validUntil } = GasLens.parseValidationData(measure.paymasterData)
  if (authorizer !== Address.zero) return refusal(parts.paymaster, "AA34 signature error")
  return EntryPointSpec[version].hasBegun(validAfter, timestamp) &&
    (validUntil === 0n || timestamp <= validUntil)
    ? null
    : refusal(parts.paymaster, "AA32 paymaster expired or not due")
}
