import * as BigInts from "effect/BigInt"
import * as Result from "effect/Result"
import * as DataCost from "../../../../domain/erc4337/gas/DataCost.js"
import type { FeePrices } from "../../../../domain/erc4337/gas/Fees.js"
import * as Gas from "../../../../domain/erc4337/gas/Gas.js"
import * as SubmitterReimbursement from "../../../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as Percent from "../../../../domain/erc4337/Percent.js"
import type { UserOperation } from "../../../../domain/erc4337/UserOperation.js"
import * as Transaction from "../../../../domain/evm/Transaction.js"
import * as Address from "../../../../domain/primitives/Address.js"
import * as Hex from "../../../../domain/primitives/Hex.js"
import * as Conditions from "../../../../domain/signature/Conditions.js"
import * as Prices from "../../../chain/Prices.js"
import type { ChainClient, NetworkFees } from "../../../ports/chain/ChainRpc.js"
import type { Op, PreparedOp } from "../../../ports/journal/Records.js"
import { direct } from "../../../ports/journal/Requests.js"
import type * as Choose from "./Choose.js"
import type { Context, SubmissionContext } from "./Context.js"
import type { Candidate } from "./Queue.js"

/** Rules for ops of one transaction: company, size, and the transaction's cost. Pure. */

/** A ready op with the settings that it was accepted with. */
export interface Held extends Candidate {
  readonly op: Op
  /** Null: prepared by another version, or to be prepared again. */
  readonly prepared: PreparedOp | null
  /** Null: currently unreadable. */
  readonly context: Context | null
  /** Its share of a transaction; null: unknown. */
  readonly weight: Weight | null
}

export interface Weight {
  readonly gas: bigint
  readonly bytes: bigint
}

const names = new WeakMap<ChainClient, string>()
let named = 0

/** One name per client: accounts share no clients. */
const nameOf = (chain: ChainClient): string => {
  const known = names.get(chain)
  if (known !== undefined) return known
  named += 1
  names.set(chain, String(named))
  return String(named)
}

/** Ops of the same company may share a transaction. Accounts that share an EOA do not: each bears the effects of its own ops. */
const companyOf = ({ accountId, opId, requestId }: Op, context: Context | null): string => {
  if (context?.kind !== "ops") return `op ${opId}`
  const together = `${accountId} ${nameOf(context.connection.chain)} ${context.entryPoint}`
  // An aggregated signature covers the ops of one request.
  return context.aggregator === null ? together : `${together} ${context.aggregator} ${requestId}`
}

const frameOf = (context: SubmissionContext): bigint => gasOf(context, [])

const enough = 2n ** 64n

const gasOf = (
  { connection: { profile }, version }: SubmissionContext,
  ops: ReadonlyArray<UserOperation>
): bigint =>
  Result.getOrElse(
    Gas.transactionGasLimit(version, ops, {
      bound: enough,
      overshoot: Percent.zero,
      withoutPostOp: profile.sponsor?.paymaster ?? null
    }),
    ({ needed }) => needed
  )

/** Sums of weights are never below the joint need of ops: shared costs count for each op. */
const weightOf = (context: Context | null, prepared: PreparedOp | null): Weight | null => {
  if (context?.kind !== "ops" || prepared === null || prepared.kind === "direct") return null
  const { unsigned } = prepared
  return {
    gas: gasOf(context, [unsigned]) - frameOf(context),
    bytes: DataCost.ofOp(context.version, unsigned).bytes
  }
}

export const held = (op: Op, context: Context | null): Held => {
  const { prepared } = op
  return {
    op,
    prepared,
    context,
    weight: weightOf(context, prepared),
    opId: op.opId,
    requestId: op.requestId,
    index: op.index,
    accountId: op.accountId,
    route: op.space.entryPoint,
    company: companyOf(op, context),
    dependsOn: prepared?.dependsOn ?? [],
    wallet: op.space.wallet,
    key: op.nonceKey,
    sequence: op.sequence,
    // Signed bytes of a direct transaction are dead once it is ready again; its payload under another nonce would run twice.
    exposed: op.exposed && op.space.entryPoint !== direct,
    given: prepared?.kind === "given",
    creates: prepared !== null && prepared.kind !== "direct" && prepared.unsigned.initCode !== Hex.empty,
    calls: prepared === null || prepared.kind === "direct" || prepared.unsigned.callData !== Hex.empty,
    userOpHash: op.userOpHash
  }
}

/** Whether its caller may have signed it for any EOA. */
const isForAnyone = (prepared: PreparedOp | null): boolean => {
  if (prepared?.kind !== "given") return false
  const signed = Conditions.decodeSignature(prepared.unsigned.signature)
  return Result.isFailure(signed) || signed.success.conditions.bundler === Address.zero
}

/**
 * Whether a third party may land signed bytes of it. Bytes bound to the lane's EOA are dead once the op is ready again, so it
 * may fail.
 */
export const mayLand = ({
  context,
  exposed,
  prepared
}: Pick<Held, "context" | "exposed" | "prepared">): boolean =>
  exposed && (isForAnyone(prepared) || context === null || context.connection.profile.remoteBundler !== null)

const frameBytes = 1_024n

/** A transaction's capacity: the chain's gas bound, and the bytes that nodes accept into their pools. */
export const capacity = (bound: bigint): Choose.Capacity<Held, Weight> => ({
  start: { gas: 0n, bytes: frameBytes },
  add: (total, { context, weight }) => {
    if (context?.kind !== "ops" || weight === null) return total
    const sum = { gas: total.gas + weight.gas, bytes: total.bytes + weight.bytes }
    const fits = sum.gas + frameOf(context) <= bound && sum.bytes <= BigInt(Transaction.maxDataBytes)
    return fits ? sum : null
  }
})

/** Gas limit from the ops, with the caller's buffer on the transaction's overhead. */
export const gasLimit = (
  { buffers, connection: { profile }, version }: SubmissionContext,
  ops: ReadonlyArray<UserOperation>,
  bound: bigint,
  aggregatorGas: bigint
): bigint => {
  const limit = Gas.transactionGasLimit(version, ops, {
    bound,
    overshoot: buffers.transaction,
    withoutPostOp: profile.sponsor?.paymaster ?? null
  })
  const own = Result.getOrElse(limit, () => bound)
  return BigInts.min(own + Gas.overshoot(aggregatorGas, buffers.transaction), bound)
}

/** The declared limit, or the simulated use with the buffer if higher; at most the bound. */
export const gasLimitOf = (
  { buffers }: Context,
  declared: bigint,
  tried: SubmitterReimbursement.BundleGas | null,
  bound: bigint
): bigint =>
  tried === null
    ? declared
    : BigInts.max(declared, BigInts.min(Gas.overshoot(tried.used, buffers.transaction), bound))

/**
 * Current gas prices of the transaction; null: the chain asks for more than the operator's caps. The service's EOA never pays
 * more than any op does.
 */
export const prices = (
  { access, buffers, connection: { profile } }: Context,
  market: NetworkFees,
  ops: ReadonlyArray<Pick<UserOperation, "maxFeePerGas" | "maxPriorityFeePerGas">>
): FeePrices | null => {
  const offered = Result.getOrNull(Prices.quote(profile, market, buffers.price))
  if (offered === null || access.key !== "serviceEoa") return offered
  return SubmitterReimbursement.prices(offered, ops)
}
