import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as L1Fee from "../../../domain/erc4337/gas/L1Fee.js"
import * as SubmitterReimbursement from "../../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as EoaNonces from "../../chain/EoaNonces.js"
import * as Keys from "../../keys/Keys.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { OpId } from "../../ports/journal/Records.js"
import type { SignerError } from "../../ports/Signers.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import * as Reasons from "../../request/Reasons.js"
import { aggregate } from "./Aggregate.js"
import { forget, type Next, pause, type State, stepOf, type Work, whole } from "./LaneState.js"
import * as Record from "./Record.js"
import * as Bundle from "./rules/Bundle.js"
import * as Choose from "./rules/Choose.js"
import type { Context, DirectContext, OpContext } from "./rules/Context.js"
import * as Pauses from "./rules/Pauses.js"
import * as Queue from "./rules/Queue.js"
import * as Rejection from "./rules/Rejection.js"
import type { Sealed } from "./Sign.js"
import * as Simulate from "./Simulate.js"
import { isReconciled } from "./Unknown.js"
import { blame, fail, prepareAgain } from "./Upkeep.js"

/** How a lane's worker brings what it has chosen into a transaction: tried, signed, recorded, and given to the monitor. */

const readNonces = EoaNonces.make()

export const boundOf = (state: State, { connection: { profile } }: Context): bigint =>
  state.newest === null
    ? profile.caps.transactionGas
    : BigInts.min(state.newest.gasLimit, profile.caps.transactionGas)

/** What was read of the lane's past may have taken ops out of the worker's hands. */
const isHeld = (state: State, ops: ReadonlyArray<Bundle.Held>): boolean =>
  ops.every((op) => state.queue.ops.includes(op))

/** A signer that refuses the transaction may sign smaller ones: what it refuses alone fails for it. */
const unsigned = (work: Work, ops: ReadonlyArray<Bundle.Held>, error: SignerError) =>
  Effect.suspend(() => {
    const { state } = work
    if (error.reason !== "refused") return pause(state, [whole], error.message)
    const components = new Set(Queue.componentsOf(ops).values()).size
    const failure = elementFailure("signer_unavailable", Keys.unavailable(error))
    if (components === 1) return fail(work, new Map(ops.map(({ opId }) => [opId, failure])))
    state.most = Rejection.halved(components)
    return Effect.void
  })

/** Signs, records and sends; whatever keeps the transaction from being recorded leaves nothing behind. */
const send = (
  work: Work,
  context: Context,
  ops: ReadonlyArray<Bundle.Held>,
  payload: Omit<Record.Payload, "access" | "drainedTo" | "signer">
): Effect.Effect<Next, JournalError> =>
  Effect.gen(function* (): Effect.fn.Return<Next, JournalError> {
    const { state } = work
    const { lane } = state
    const { access, connection } = context
    const [first] = ops
    if (first === undefined) return "again"
    const resolved = yield* Effect.result(work.signerOf(access))
    if (Result.isFailure(resolved)) {
      yield* pause(state, [whole], resolved.failure.message)
      return "again"
    }
    const answer = yield* Effect.result(
      Record.record(work.transactionJournal, lane.chainId, {
        ...payload,
        access,
        signer: resolved.success,
        drainedTo: 0n
      })
    )
    if (Result.isFailure(answer)) {
      if (answer.failure._tag === "JournalError") return yield* answer.failure
      yield* unsigned(work, ops, answer.failure)
      return "again"
    }
    const recorded = answer.success
    const all = new Set(ops.map(({ opId }) => opId))
    switch (recorded._tag) {
      case "recorded": {
        state.pauses = Pauses.ended(state.pauses, [whole])
        if (recorded.record.nonce === state.knownTo) state.knownTo += 1n
        state.most = Queue.bundle
        state.turns += 1
        state.servedAt.set(first.accountId, state.turns)
        for (const op of payload.ops.length > 0 ? ops : [])
          state.sequences.set(Choose.keyOf(op), op.sequence + 1n)
        if (ops.every(({ calls, creates }) => creates && !calls)) work.inFlight.noteCreation(recorded.record)
        forget(state, all)
        yield* work.monitor.watch({
          chain: connection.chain,
          profile: connection.profile,
          record: recorded.record
        })
        return "again"
      }
      case "givenUp":
        // What is held is out of date: the rest of it may be, too.
        forget(state, new Set(recorded.opIds))
        state.queue = { ...state.queue, hasMore: true }
        if (recorded.opIds.length === 0) state.queue = Queue.empty
        return "again"
      case "insufficientFunds":
        // What is too dear together may be paid for one by one.
        if (state.most > 1 && ops.length > 1) state.most = Rejection.halved(ops.length)
        else yield* pause(state, [whole], `the EOA lacks money beside the ${recorded.reserved} wei under way`)
        return "again"
      case "nonceUsed":
      case "otherRoute":
        yield* pause(state, [whole], `not recorded: ${recorded._tag}`)
        return "again"
    }
  })

/** A transaction of the signer's own, tried on the latest block: one that would revert by now is prepared again. */
export const sendDirect = (work: Work, op: Bundle.Held, context: DirectContext) =>
  Effect.gen(function* () {
    const { state } = work
    const { opId, prepared, requestId } = op
    if (prepared?.kind !== "direct") return "again" as const
    const { data, gasLimit, to, value } = prepared.unsigned
    if (to === null) return yield* Effect.die(new Error("a direct transaction that creates a contract"))
    const { chain } = context.connection
    const { signer } = state.lane
    const [seen, tried] = yield* Effect.all(
      [
        Effect.result(Simulate.look(chain, work.facts, readNonces, signer, [])),
        Effect.result(chain.call({ from: signer, to, data, value, gas: gasLimit }))
      ],
      { concurrency: "unbounded" }
    )
    if (Result.isFailure(seen)) {
      yield* pause(state, [whole], seen.failure.message)
      return "again" as const
    }
    const { balance, fees, nonces } = seen.success
    const isKnown = yield* isReconciled(work, context, nonces)
    if (!isKnown || !isHeld(state, [op])) return "again" as const
    if (Result.isFailure(tried)) {
      yield* pause(state, [opId], tried.failure.message)
      return "again" as const
    }
    if (!tried.success.success) {
      // Or it is made again and again, where the node says the one thing to one question and another to the other.
      yield* pause(state, [opId], "it would revert now")
      yield* prepareAgain(work, [op])
      return "again" as const
    }
    const prices = Bundle.prices(context, fees, [])
    if (prices === null) {
      yield* pause(state, [opId], "the chain asks for more than the operator's cap")
      return "again" as const
    }
    return yield* send(work, context, [op], {
      ops: [],
      direct: { opId, requestId },
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
    // What the audit log keeps of it is kept for its request.
    Effect.annotateLogs({ requestId: op.requestId, endpoint: op.op.endpoint })
  )

/** The ops do not give the service's EOA back what the transaction costs: nobody goes at the expense of others. */
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
    const components = new Set(ops.map(componentOf))
    const isAlone = components.size === 1
    const failed = new Map<OpId, ElementFailure>()
    for (const component of components)
      if (stepOf(state, component, { _tag: "unpaid", isAlone }) === "reject")
        for (const op of ops) if (componentOf(op) === component) failed.set(op.opId, failure)
    if (failed.size > 0) return yield* fail(work, failed)
    if (isAlone)
      yield* pause(
        state,
        ops.map(({ opId }) => opId),
        failure.message
      )
  })

/** Tries the signed bundle on the latest block, the suspects beside it, and sends it where it passes. */
export const sendBundle = (
  work: Work,
  context: OpContext,
  ops: ReadonlyArray<Bundle.Held>,
  signed: ReadonlyArray<Sealed>,
  suspects: ReadonlyArray<{
    readonly ops: ReadonlyArray<Bundle.Held>
    readonly signed: ReadonlyArray<Sealed>
  }>,
  componentOf: (op: Bundle.Held) => string
) =>
  Effect.gen(function* () {
    const { state } = work
    const { connection, entryPoint, version } = context
    const tried = [...ops, ...suspects.flatMap((each) => each.ops)]
    const [first] = tried
    if (first === undefined) return "again" as const
    const bound = boundOf(state, context)
    const groups = [signed, ...suspects.map((each) => each.signed)].filter((some) => some.length > 0)
    const aggregated = yield* Effect.result(
      Effect.forEach(groups, (some) => aggregate(context, some, (data) => work.revertOf(first, data)))
    )
    if (Result.isFailure(aggregated)) {
      const { failure } = aggregated
      if (failure._tag === "Refused") yield* fail(work, failure.failed)
      else
        yield* pause(
          state,
          tried.map(({ opId }) => opId),
          failure.why
        )
      return "again" as const
    }
    const trials = aggregated.success.map(
      (some): Simulate.Trial => ({
        ...some,
        version,
        entryPoint,
        gas: Bundle.gasLimit(
          context,
          some.ops.map(({ op }) => op),
          bound,
          some.aggregate?.gas ?? 0n
        )
      })
    )
    const seen = yield* Effect.result(
      Simulate.look(connection.chain, work.facts, readNonces, state.lane.signer, trials)
    )
    if (Result.isFailure(seen)) {
      yield* pause(state, [whole], seen.failure.message)
      return "again" as const
    }
    const { balance, block, fees, nonces, results } = seen.success
    const isNewest = block !== null && (state.newest === null || block.number >= state.newest.number)
    const isKnown = yield* isReconciled(work, context, nonces)
    // Nothing is said of what may have landed as something that the journal does not know.
    if (!isHeld(state, tried) || (!isKnown && tried.some(({ exposed }) => !exposed))) return "again" as const
    if (block !== null && isNewest) state.newest = block
    else yield* pause(state, [whole], "the node is behind")
    const own = signed.length === 0 ? undefined : results[0]
    for (const [at, suspect] of suspects.entries()) {
      const result = results[signed.length === 0 ? at : at + 1]
      if (result === undefined) continue
      const [suspected] = suspect.ops
      if (suspected === undefined) continue
      const how = { isAlone: true, isNewest, componentOf }
      if (result._tag === "passes") stepOf(state, componentOf(suspected), { _tag: "passed", isAlone: true })
      else
        yield* blame(
          work,
          suspect.ops,
          result._tag === "refuses"
            ? result.ops
            : new Map(suspect.ops.map(({ opId }) => [opId, result.data])),
          how
        )
    }
    if (own === undefined) return "again" as const
    const components = new Set(ops.map(componentOf))
    const isAlone = components.size === 1
    if (own._tag === "refuses") {
      yield* blame(work, ops, own.ops, { isAlone, isNewest, componentOf })
      return "again" as const
    }
    if (own._tag === "fault") {
      if (isAlone)
        yield* blame(work, ops, new Map(ops.map(({ opId }) => [opId, own.data])), {
          isAlone,
          isNewest,
          componentOf
        })
      else state.most = Rejection.halved(components.size)
      return "again" as const
    }
    const prices = Bundle.prices(
      context,
      fees,
      signed.map(({ op }) => op)
    )
    if (prices === null) {
      yield* pause(state, [whole], "the chain asks for more than the operator's cap")
      return "again" as const
    }
    const l1Fee = ops.reduce((sum, { prepared }) => sum + (prepared?.l1Fee ?? 0n), 0n)
    const gasPrice = BigInts.min(
      prices.maxFeePerGas,
      (block?.baseFeePerGas ?? prices.maxFeePerGas) + prices.maxPriorityFeePerGas
    )
    const isPaid =
      context.access.key !== "serviceEoa" ||
      (own.gas !== null && SubmitterReimbursement.covers(own.gas, { gasPrice, l1Fee: L1Fee.unbound(l1Fee) }))
    if (!isPaid) {
      yield* leaveUnpaid(work, ops, own.gas, componentOf)
      return "again" as const
    }
    for (const component of components) stepOf(state, component, { _tag: "recorded" })
    const [trial] = trials
    if (trial === undefined) return "again" as const
    const hashes = new Map(signed.map(({ opId, userOpHash }) => [opId, userOpHash]))
    return yield* send(work, context, ops, {
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
