import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as EntryPointReason from "../../domain/erc4337/EntryPointReason.js"
import { EntryPointSpec } from "../../domain/erc4337/entrypoint/EntryPointSpec.js"
import * as GasLens from "../../domain/erc4337/gas/GasLens.js"
import * as PaymasterData from "../../domain/erc4337/paymaster/PaymasterData.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"

/** The stages at which it is the paymaster that fails, and what the EntryPoint says then of revert data of its own. */
const reasons = { paymaster: "AA33 reverted", postOp: "AA50 postOp reverted" } as const

const blame = (paymaster: Address.Address, what: string): string => `paymaster ${paymaster}: ${what}`

/**
 * What an op failed for in a simulation, in one line: with the paymaster's address when it was the paymaster, and the
 * EntryPoint's code, which `revert` gives for data of the EntryPoint's own.
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
 * Why the paymaster does not pay although nothing reverted; null: it does, or it cannot be told. Only a paymaster that is
 * given no data says the same of an op that is measured and of the one that is sent: a signature is made later.
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
