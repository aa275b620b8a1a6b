import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import * as L1Fee from "../../../domain/erc4337/gas/L1Fee.js"
import * as SubmitterReimbursement from "../../../domain/erc4337/gas/SubmitterReimbursement.js"
import type { Hex } from "../../../domain/primitives/Hex.js"
import * as EoaNonces from "../../chain/EoaNonces.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Keys from "../../keys/Keys.js"
import type { OpId } from "../../ports/journal/Records.js"
import type { SignerError } from "../../ports/Signers.js"
import { aggregate } from "./Aggregate.js"
import { forget, pause, type State, stepOf, type Work, whole } from "./LaneState.js"
import * as Record from "./Record.js"
import { isReconciled } from "./recovery/Unknown.js"
import * as Bundle from "./rules/Bundle.js"
import * as Choose from "./rules/Choose.js"
import { asObstacle, type Context, type DirectContext, type SubmissionContext } from "./rules/Context.js"
import * as Pauses from "./rules/Pauses.js"
import * as Queue from "./rules/Queue.js"
import * as Rejection from "./rules/Rejection.js"
import type { Sealed } from "./Sign.js"
import * as Simulate from "./Simulate.js"
import { blame, fail, prepareAgain } from "./Upkeep.js"

/** Brings chosen ops into a transaction: simulates, signs and records it, and gives it to the monitor. */

const readNonces = EoaNonces.make()

const aboveCap = "the chain asks for more than the operator's cap"

export const boundOf = (state: State, { connection: { profile } }: Context): bigint =>
  state.newest === null
    ? profile.caps.transactionGas
    : BigInts.min(state.newest.gasLimit, profile.caps.transactionGas)

/** Whether the worker still holds the ops: reading the lane's past may have removed them. */
const isHeld = (state: State, ops: ReadonlyArray<Bundle.Held>): boolean =>
  ops.every((op) => state.queue.ops.includes(op))

/** A signer that refuses the transaction may sign smaller ones; a single refused component fails. */
const unsigned = (work: Work, ops: ReadonlyArray<Bundle.Held>, error: SignerError) =>
  Effect.suspend(() => {
    const { state } = work
    if (error.reason !== "refused") return pause(state, [whole], error.message)
    const components = new Set(Queue.componentsOf(ops).values()).size
    const failure = elementFailure("signer_unavailable", Keys.unavailable(error))
    if (components === 1) return fail(work, new Map(ops.map(({ opId }) => [opId, failure])))
    state.most = Rejection.halve(components)
    return Effect.void
  })

/** Signs, records and sends; a failure before the record leaves nothing behind. */
const send = (
  work: Work,
  { access, connection }: Context,
  ops: ReadonlyArray<Bundle.Held>,
  payload: Omit<Record.Payload, "access" | "signer">
) =>
  Effect.gen(function* () {
    const { state } = work
    const [first] = ops
    if (first === undefined) return
    const signer = yield* Effect.result(work.signerOf(access))
    if (Result.isFailure(signer)) return yield* pause(state, [whole], signer.failure.message)
    const answer = yield* Effect.result(
      Record.record(work.transactionJournal, state.lane.chainId, {
        ...payload,
        access,
        signer: signer.success
      })
    )
    if (Result.isFailure(answer)) {
      const { failure } = answer
      return failure._tag === "JournalError" ? yield* failure : yield* unsigned(work, ops, failure)
    }
    const recorded = answer.success
    switch (recorded._tag) {
      case "recorded": {
        const { record } = recorded
        state.pauses = Pauses.end(state.pauses, [whole])
        if (record.nonce === state.knownTo) state.knownTo += 1n
        state.most = Queue.bundle
        state.turns += 1
        state.servedAt.set(first.accountId, state.turns)
        if (payload.direct === null)
          for (const op of ops) state.sequences.set(Choose.keyOf(op), op.sequence + 1n)
        if (ops.every(({ calls, creates }) => creates && !calls)) work.inFlight.noteCreation(record)
        forget(state, ops)
        return yield* work.monitor.watch({ chain: connection.chain, profile: connection.profile, record })
      }
      case "givenUp":
        // The queue is outdated: other ops may be, too.
        forget(state, recorded.opIds)
        state.queue = recorded.opIds.length === 0 ? Queue.empty : { ...state.queue, hasMore: true }
        return
      case "insufficientFunds":
        // Ops too expensive together may be affordable one by one.
        if (state.most > 1 && ops.length > 1) state.most = Rejection.halve(ops.length)
        else
          yield* pause(
            state,
            [whole],
            `the EOA lacks money in addition to the ${recorded.reserved} wei under way`
          )
        return
      case "nonceUsed":
      case "otherRoute":
        return yield* pause(state, [whole], `not recorded: ${recorded._tag}`)
    }
  })

/** Whether the ops of a bundle refund its transaction. Only the service's EOA demands that. */
const isReimbursed = (
  { access }: SubmissionContext,
  gas: SubmitterReimbursement.BundleGas | null,
  {
    baseFee,
    l1Fee,
    prices
  }: { readonly prices: FeePrices; readonly l1Fee: bigint; readonly baseFee: bigint | null }
): boolean => {
  if (access.key !== "serviceEoa") return true
  const { maxFeePerGas, maxPriorityFeePerGas } = prices
  const gasPrice = BigInts.min(maxFeePerGas, (baseFee ?? maxFeePerGas) + maxPriorityFeePerGas)
  return gas !== null && SubmitterReimbursement.covers(gas, { gasPrice, l1Fee: L1Fee.unbound(l1Fee) })
}

/** Sends the signer's own transaction after a call on the latest block; if it would revert, it is prepared again. */
export const sendDirect = (work: Work, op: Bundle.Held, context: DirectContext) =>
  Effect.gen(function* () {
    const { state } = work
    const { opId, prepared, requestId } = op
    if (prepared?.kind !== "direct") return
    const { data, gasLimit, to, value } = prepared.unsigned
    if (to === null) return yield* Effect.die(new Error("a direct transaction that creates a contract"))
    const { chain } = context.connection
    const { signer } = state.lane
    const [seen, tried] = yield* Effect.all(
      [
        Effect.result(Simulate.simulate(chain, work.facts, readNonces, signer, [])),
        Effect.result(chain.call({ from: signer, to, data, value, gas: gasLimit }))
      ],
      { concurrency: "unbounded" }
    )
    if (Result.isFailure(seen)) return yield* pause(state, [whole], seen.failure.message)
    const { balance, fees, nonces } = seen.success
    const isKnown = yield* isReconciled(work, context, nonces)
    if (!isKnown || !isHeld(state, [op])) return
    if (Result.isFailure(tried)) return yield* pause(state, [op], tried.failure.message)
    if (!tried.success.success) {
      // Pause first: a node that contradicts itself would cause endless preparation.
      yield* pause(state, [op], "it would revert now")
      return yield* prepareAgain(work, [op])
    }
    const prices = Bundle.prices(context, fees, [])
    if (prices === null) return yield* pause(state, [op], aboveCap)
    const { nonce } = yield* work.transactionJournal.nextNonce(state.lane, nonces.next)
    const held = yield* Effect.result(context.bindHolds(prepared, nonce))
    if (Result.isFailure(held))
      return yield* held.failure._tag === "PayerRefusal"
        ? fail(work, new Map([[opId, held.failure.failure]]))
        : pause(state, [op], asObstacle(held.failure).why)
    yield* send(work, context, [op], {
      ops: [],
      direct: { opId, requestId, nonce },
      to,
      data,
      value,
      gasLimit,
      prices,
      l1Fee: prepared.l1Fee,
      chainNonce: nonces.next,
      balance
    })
  }).pipe(
    // The audit log attributes its entries to the request.
    Effect.annotateLogs({ requestId: op.requestId, endpoint: op.op.endpoint })
  )

/** Ops whose fees do not cover the transaction's cost for the service's EOA fail, or go separately. */
const leaveUnpaid = (
  work: Work,
  ops: ReadonlyArray<Bundle.Held>,
  gas: SubmitterReimbursement.BundleGas | null,
  componentOf: (op: Bundle.Held) => string
) =>
  Effect.gen(function* () {
    const { state } = work
    const failure = elementFailure(
      "submission_unpaid",
      gas === null ? Reasons.text("notMeasured") : Reasons.text("chargedLess", gas)
    )
    const components = Map.groupBy(ops, componentOf)
    const isAlone = components.size === 1
    const failed = new Map<OpId, ElementFailure>()
    for (const [component, own] of components)
      if (stepOf(state, component, { _tag: "unpaid", isAlone }))
        for (const { opId } of own) failed.set(opId, failure)
    yield* fail(work, failed)
  })

export interface Signed {
  readonly ops: ReadonlyArray<Bundle.Held>
  readonly signed: ReadonlyArray<Sealed>
}

/** Simulates the signed bundle and the suspects on the latest block, and sends the bundle if it passes. */
export const sendBundle = (
  work: Work,
  context: SubmissionContext,
  { ops, signed }: Signed,
  suspects: ReadonlyArray<Signed>,
  componentOf: (op: Bundle.Held) => string
) =>
  Effect.gen(function* () {
    const { state } = work
    const { connection, entryPoint, version } = context
    const tried = [...ops, ...suspects.flatMap((each) => each.ops)]
    const [first] = tried
    if (first === undefined) return
    const bound = boundOf(state, context)
    const groups = [signed, ...suspects.map((each) => each.signed)].filter((some) => some.length > 0)
    const aggregated = yield* Effect.result(
      Effect.forEach(groups, (some) =>
        aggregate(context, some, (data) => work.preparing.revertOf(first.op, data))
      )
    )
    if (Result.isFailure(aggregated)) {
      const { failure } = aggregated
      return yield* failure._tag === "Refused" ? fail(work, failure.failed) : pause(state, tried, failure.why)
    }
    const trials = aggregated.success.map((some): Simulate.Trial => {
      const own = some.ops.map(({ op }) => op)
      return {
        ...some,
        version,
        entryPoint,
        gas: Bundle.gasLimit(context, own, bound, some.aggregate?.gas ?? 0n)
      }
    })
    const seen = yield* Effect.result(
      Simulate.simulate(connection.chain, work.facts, readNonces, state.lane.signer, trials)
    )
    if (Result.isFailure(seen)) return yield* pause(state, [whole], seen.failure.message)
    const { balance, block, fees, nonces, results } = seen.success
    const isNewest = block !== null && (state.newest === null || block.number >= state.newest.number)
    const isKnown = yield* isReconciled(work, context, nonces)
    // Ops that may have landed without the journal's knowledge are not judged.
    if (!isHeld(state, tried) || (!isKnown && tried.some(({ exposed }) => !exposed))) return
    if (block !== null && isNewest) state.newest = block
    else yield* pause(state, [whole], "the node is behind")
    const refusedOf = (some: ReadonlyArray<Bundle.Held>, data: Hex) =>
      new Map(some.map(({ opId }) => [opId, data]))
    const own = signed.length === 0 ? undefined : results[0]
    for (const [at, suspect] of suspects.entries()) {
      const result = results[signed.length === 0 ? at : at + 1]
      const [suspected] = suspect.ops
      if (result === undefined || suspected === undefined) continue
      if (result._tag === "passes") stepOf(state, componentOf(suspected), { _tag: "passed" })
      else {
        const refused = result._tag === "refuses" ? result.ops : refusedOf(suspect.ops, result.data)
        yield* blame(work, suspect.ops, refused, { isAlone: true, isNewest, componentOf })
      }
    }
    if (own === undefined) return
    const components = new Set(ops.map(componentOf))
    const how = { isAlone: components.size === 1, isNewest, componentOf }
    if (own._tag === "refuses") return yield* blame(work, ops, own.ops, how)
    if (own._tag === "fault") {
      if (how.isAlone) return yield* blame(work, ops, refusedOf(ops, own.data), how)
      state.most = Rejection.halve(components.size)
      return
    }
    const prices = Bundle.prices(
      context,
      fees,
      signed.map(({ op }) => op)
    )
    if (prices === null) return yield* pause(state, [whole], aboveCap)
    const l1Fee = ops.reduce((sum, { prepared }) => sum + (prepared?.l1Fee ?? 0n), 0n)
    if (!isReimbursed(context, own.gas, { prices, l1Fee, baseFee: block?.baseFeePerGas ?? null }))
      return yield* leaveUnpaid(work, ops, own.gas, componentOf)
    for (const component of components) stepOf(state, component, { _tag: "recorded" })
    const [trial] = trials
    if (trial === undefined) return
    const hashes = new Map(signed.map(({ opId, userOpHash }) => [opId, userOpHash]))
    yield* send(work, context, ops, {
      ops: ops.flatMap(({ index, key, opId, requestId, sequence, wallet }) => {
        const userOpHash = hashes.get(opId)
        return userOpHash === undefined
          ? []
          : [{ opId, requestId, index, userOpHash, entryPoint, wallet, key, sequence }]
      }),
      direct: null,
      to: entryPoint,
      data: Simulate.callOf(state.lane.signer, trial).data,
      value: 0n,
      gasLimit: Bundle.gasLimitOf(context, trial.gas, own.gas, bound),
      prices,
      l1Fee,
      chainNonce: nonces.next,
      balance
    })
  })
