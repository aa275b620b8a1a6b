import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type * as GasLens from "../../../domain/erc4337/gas/GasLens.js"
import * as PaymasterData from "../../../domain/erc4337/paymaster/PaymasterData.js"
import type * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Failure } from "../../failures/Failure.js"
import * as Funding from "../../payers/Funding.js"
import type { OpContext } from "../OpContext.js"
import type * as LensEstimation from "./LensEstimation.js"

/** One op to measure, with a dummy signature of the real shape; the estimate sets undeclared limits. */
export interface Draft {
  readonly index: number
  readonly op: UserOperation.UserOperation
  /** Wei that its call sends. */
  readonly value: bigint
}

export interface Input extends LensEstimation.View {
  readonly drafts: ReadonlyArray<Draft>
  /**
   * True: starts with the lowest prefund, which finds the limits of an op that its wallet's deposit only just pays for.
   * False: starts with a usual prefund, which mostly saves a second simulation.
   */
  readonly lowestPrefund: boolean
}

export type InitialTrial = Draft & LensEstimation.Trial

export interface InitialSimulation {
  readonly trials: ReadonlyArray<InitialTrial>
  readonly report: GasLens.Report
}

const grantOf = (verificationGas: bigint, callGas: bigint): LensEstimation.Grant => ({
  verificationGas,
  callGas,
  paymaster: { verificationGasLimit: verificationGas, postOpGasLimit: verificationGas }
})

/** Enough for any validation; the operator's cap bounds the call's share. */
export const generous = (cap: bigint): LensEstimation.Grant => grantOf(3_000_000n, cap)
/** For bundles that a node cannot simulate with the generous grant. */
export const modest = (cap: bigint): LensEstimation.Grant => grantOf(1_000_000n, BigInts.min(2_000_000n, cap))
const declaredIn = ({ version }: OpContext, op: UserOperation.UserOperation): LensEstimation.Grant => ({
  verificationGas: op.verificationGasLimit,
  callGas: op.callGasLimit,
  paymaster: PaymasterData.read(version, op.paymasterAndData)?.limits ?? PaymasterData.noLimits
})

/** Gas of a usual op, for the first guess of the prefund: with the caller's buffer, and without. */
const guessedLimits = 120_000n
const guessedPreVerification = 50_000n

/** Trials of each draft, with its payer's part. */
export const trials = (input: Input): Effect.Effect<ReadonlyArray<InitialTrial>, Failure> => {
  const { buffers, connection, payer, version } = input.context
  const guessedGas = input.lowestPrefund
    ? 1n
    : Gas.overshoot(guessedLimits, buffers.op) + guessedPreVerification
  return Effect.forEach(input.drafts, (draft) =>
    Effect.map(payer.draft(draft.op), (op) => ({
      ...draft,
      op,
      prefund: input.declared ? Gas.requiredPrefund(version, op) : guessedGas * op.maxFeePerGas,
      ...(input.declared ? declaredIn(input.context, op) : generous(connection.profile.caps.transactionGas))
    }))
  )
}

/** The query of the initial simulation. */
export const question = (
  { context: { version } }: LensEstimation.View,
  trials: ReadonlyArray<InitialTrial>
): LensEstimation.Question => ({
  trials,
  wallets: Funding.payers(
    version,
    trials.map(({ op }) => op)
  )
})

/**
 * Whether a simulation of some ops also holds for these. The ops may differ in prices, which only the prefund guess
 * depends on, and in the window in their signatures: no frame's gas depends on either.
 */
export const fits = (simulation: InitialSimulation, others: ReadonlyArray<InitialTrial>): boolean =>
  simulation.trials.length === others.length &&
  simulation.trials.every(({ op, value }, position) => {
    const other = others[position]
    return (
      other !== undefined &&
      other.value === value &&
      other.op.sender === op.sender &&
      other.op.nonce === op.nonce &&
      other.op.initCode === op.initCode &&
      other.op.callData === op.callData &&
      other.op.paymasterAndData === op.paymasterAndData &&
      other.op.signature.length === op.signature.length
    )
  })
