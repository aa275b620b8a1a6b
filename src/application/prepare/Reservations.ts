import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import type { Failure } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type * as Payer from "../payers/Payer.js"
import type { Budgets } from "../ports/Budgets.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import type { Call } from "./Call.js"
import type { OfRequest, Shared } from "./OpContext.js"
import * as ServiceEoa from "./ServiceEoa.js"

/** Holds money that ops may cost parties other than their wallets, from acceptance to the end. */

type UserOp = Exclude<PreparedOp, { readonly kind: "direct" }>

export const partOf = ({ index, kind, requestId, unsigned, userOpHash }: UserOp): Payer.Part => ({
  requestId,
  index,
  given: kind === "given" ? userOpHash : null,
  op: unsigned
})

const isUserOp = (op: PreparedOp): op is UserOp => op.kind !== "direct"

/** Holds each op's possible cost for its payer and for the service's EOA. Returns the failures of ops without room. */
export const reserve = (
  context: Shared,
  ops: ReadonlyArray<PreparedOp>,
  prices: FeePrices
): Effect.Effect<ReadonlyMap<PreparedOp, ElementFailure>, Failure, Budgets> =>
  Effect.gen(function* () {
    const failed = new Map<PreparedOp, ElementFailure>()
    const left = ops.filter(isUserOp)
    const { payer } = context
    const lacks = yield* payer.reserve(left.map(partOf))
    for (const [place, op] of left.entries()) {
      const lack = lacks[place] ?? null
      if (lack !== null) failed.set(op, lack)
    }
    if (!ServiceEoa.isAtRisk(context)) return failed
    const risky = left.filter((op) => !failed.has(op))
    const risks = risky.map((op) => ({ ...partOf(op), l1Fee: op.l1Fee }))
    const refused = yield* ServiceEoa.reserve(context, risks, prices)
    for (const [place, op] of risky.entries()) {
      const lack = refused[place] ?? null
      if (lack !== null) failed.set(op, lack)
    }
    yield* payer.release(risky.filter((op) => failed.has(op)).map(partOf))
    return failed
  })

/** Releases the holds of unsigned ops. */
export const release = (
  context: Shared,
  ops: ReadonlyArray<PreparedOp>
): Effect.Effect<void, never, Budgets> => giveBackHeld(context, ops.filter(isUserOp).map(partOf))

/** Releases the holds of elements that will not be sent. Signed ops' holds stay until the chain decides. */
export const giveBack = (
  context: OfRequest,
  calls: ReadonlyArray<Call>
): Effect.Effect<void, never, Budgets> => {
  const held = calls.map((call) => ({ ...call, given: call.kind === "given" ? call.userOpHash : null }))
  return context.kind === "direct" ? Effect.void : giveBackHeld(context, held)
}

const giveBackHeld = (
  context: Shared,
  held: ReadonlyArray<Payer.Held>
): Effect.Effect<void, never, Budgets> => {
  const paid = context.payer.release(held)
  return ServiceEoa.isAtRisk(context) ? Effect.andThen(paid, ServiceEoa.giveBack(context, held)) : paid
}

export interface NonceQuery {
  /** The EOA's, wei. */
  readonly balance: bigint
  readonly prices: FeePrices
  /** Gas limit of one transaction. */
  readonly gasBound: bigint
}

/**
 * Wei that the EOA lacks to send these ops in a separate transaction; 0: none. Its funds next to transactions in flight
 * decide later when the ops are sent.
 */
const lackOf = (
  { access, buffers, connection: { profile }, version }: Shared,
  ops: ReadonlyArray<UserOp>,
  { balance, gasBound, prices }: NonceQuery
): bigint => {
  const l1Fee = ops.reduce((sum, op) => sum + op.l1Fee, 0n)
  // The service's EOA never pays a higher price than its ops do.
  const price = ops.reduce(
    (least, { unsigned }) => BigInts.min(least, unsigned.maxFeePerGas),
    prices.maxFeePerGas
  )
  const gasPrice = access.key === "serviceEoa" ? price : prices.maxFeePerGas
  if (balance >= gasBound * gasPrice + l1Fee) return 0n
  const gas = Gas.transactionGasLimit(
    version,
    ops.map(({ unsigned }) => unsigned),
    {
      bound: gasBound,
      overshoot: buffers.transaction,
      withoutPostOp: profile.sponsor?.paymaster ?? null
    }
  )
  const cost = Result.getOrElse(gas, () => gasBound) * gasPrice + l1Fee
  return BigInts.max(cost - balance, 0n)
}

/** Components whose transaction the EOA could not pay for even if it carried no other ops. */
export const unaffordable = (
  context: Shared,
  components: Iterable<ReadonlyArray<PreparedOp>>,
  query: NonceQuery
): ReadonlyMap<PreparedOp, ElementFailure> => {
  const failed = new Map<PreparedOp, ElementFailure>()
  if (context.connection.profile.remoteBundler !== null) return failed
  for (const ops of components) {
    const own = ops.filter(isUserOp)
    const missing = lackOf(context, own, query)
    if (own.length === 0 || missing === 0n) continue
    const { submitter } = context
    const failure = elementFailure(
      "insufficient_funds",
      Reasons.text("submitterFunds", { submitter, missing }),
      {
        submitter,
        missing: missing.toString()
      }
    )
    for (const op of own) failed.set(op, failure)
  }
  return failed
}
