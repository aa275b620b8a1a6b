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
import type { Context, OpContext } from "./Context.js"
import type { Candidate } from "./Queue.js"

/** What ops of one transaction share: who may go with whom, how much fits, and what the transaction costs. Pure. */

/** A ready op with the settings that it was accepted with. */
export interface Held extends Candidate {
  readonly op: Op
  /** Null: another version prepared it, or it is to be prepared again for another reason. */
  readonly prepared: PreparedOp | null
  /** Null: they can not be read now. */
  readonly context: Context | null
  /** What it adds to a transaction; null: nothing is known of it yet. */
  readonly weight: Weight | null
}

/** Gas and bytes of calldata. */
export interface Weight {
  readonly gas: bigint
  readonly bytes: bigint
}

const names = new WeakMap<ChainClient, string>()
let named = 0

/** Nodes are told apart as clients: accounts share none. */
const nameOf = (chain: ChainClient): string => {
  const known = names.get(chain)
  if (known !== undefined) return known
  named += 1
  names.set(chain, String(named))
  return String(named)
}

/** Who may share a transaction: accounts that share an EOA do not, since each is to bear what its own ops do. */
const companyOf = ({ accountId, opId, requestId }: Op, context: Context | null): string => {
  if (context?.kind !== "ops") return `op ${opId}`
  const together = `${accountId} ${nameOf(context.connection.chain)} ${context.entryPoint}`
  // One signature is that of the ops of one request.
  return context.aggregator === null ? together : `${together} ${context.aggregator} ${requestId}`
}

/** Of the transaction without any op. */
const frameOf = (context: OpContext): bigint => gasOf(context, [])

const enough = 2n ** 64n

const gasOf = ({ connection: { profile }, version }: OpContext, ops: ReadonlyArray<UserOperation>): bigint =>
  Result.getOrElse(
    Gas.transactionGasLimit(version, ops, {
      bound: enough,
      overshoot: Percent.zero,
      withoutPostOp: profile.sponsor?.paymaster ?? null
    }),
    ({ needed }) => needed
  )

/** Sums of these are never less than what ops need together: what they share is counted for each. */
const weightOf = (context: Context | null, prepared: PreparedOp | null): Weight | null => {
  if (context?.kind !== "ops" || prepared === null || prepared.kind === "direct") return null
  const { unsigned } = prepared
  return {
    gas: gasOf(context, [unsigned]) - frameOf(context),
    bytes: DataCost.ofOp(context.version, unsigned).bytes
  }
}

/** `calls`: whether the target is none of the suite's own contracts. */
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
    // What was signed of a transaction of the EOA itself is dead when that is ready, and the same under another nonce is done twice.
    exposed: op.exposed && op.space.entryPoint !== direct,
    given: prepared?.kind === "given",
    creates: prepared !== null && prepared.kind !== "direct" && prepared.unsigned.initCode !== Hex.empty,
    calls: prepared === null || prepared.kind === "direct" || prepared.unsigned.callData !== Hex.empty,
    userOpHash: op.userOpHash
  }
}

/** Its caller may have signed it for any EOA. */
const isForAnyone = (prepared: PreparedOp | null): boolean => {
  if (prepared?.kind !== "given") return false
  const signed = Conditions.decodeSignature(prepared.unsigned.signature)
  return Result.isFailure(signed) || signed.success.conditions.bundler === Address.zero
}

/**
 * Whether somebody else may land what was signed of it: what is bound to the lane's EOA has no version left once it is ready
 * again, and may come to nothing.
 */
export const mayLand = ({
  context,
  exposed,
  prepared
}: Pick<Held, "context" | "exposed" | "prepared">): boolean =>
  exposed && (isForAnyone(prepared) || context === null || context.connection.profile.remoteBundler !== null)

const frameBytes = 1_024n

/** What one transaction takes: the chain's bound of gas, and the bytes that nodes take into their pools. */
export const capacity = (bound: bigint): Choose.Capacity<Held, Weight> => ({
  start: { gas: 0n, bytes: frameBytes },
  add: (total, { context, weight }) => {
    if (context?.kind !== "ops" || weight === null) return total
    const sum = { gas: total.gas + weight.gas, bytes: total.bytes + weight.bytes }
    const fits = sum.gas + frameOf(context) <= bound && sum.bytes <= BigInt(Transaction.maxDataBytes)
    return fits ? sum : null
  }
})

/** The ops' gas, and the caller's buffer on what the transaction needs beside. */
export const gasLimit = (
  { buffers, connection: { profile }, version }: OpContext,
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

/** What the ops declare, or what the transaction used when it was tried and the buffer; at most the bound. */
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
 * What a gas unit of the transaction is paid now; null: the chain asks for more than the operator allows. The service's EOA never
 * pays more than any of the ops does.
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
