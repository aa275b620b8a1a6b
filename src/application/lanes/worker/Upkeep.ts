import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as FailedOp from "../../../domain/erc4337/FailedOp.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { dependencyFailed, type ElementFailure, elementFailure } from "../../failures/Elements.js"
import * as Reasons from "../../failures/Reasons.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { OpId, PreparedOp } from "../../ports/journal/Records.js"
import type { FailedElement } from "../../ports/journal/Requests.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import { forget, isFresh, mayGiveUp, pause, replaceHeld, type State, stepOf, type Work } from "./LaneState.js"
import * as Bundle from "./rules/Bundle.js"
import * as Choose from "./rules/Choose.js"
import { isPricedOut, type Obstacle, obstacle, type Prepared } from "./rules/Context.js"
import * as Queue from "./rules/Queue.js"
import * as Rejection from "./rules/Rejection.js"
import type { Sealed } from "./Sign.js"

/** Handles ops that cannot go unchanged: prepares them again, renumbers, looks up or fails them. */

type Failures = ReadonlyMap<OpId, ElementFailure>

const lowestOf = (state: State, key: string): bigint =>
  state.queue.ops
    .filter((op) => Choose.keyOf(op) === key)
    .reduce((least, { sequence }) => BigInts.min(least, sequence), 2n ** 64n)

/**
 * Fails these elements and their dependants; a dependant that may still land waits until it is dead. `sent`: failed ops that a
 * remote bundler has; only their failure is recorded.
 */
const end = (work: Work, failures: Failures, sent: ReadonlyArray<Bundle.Held> = []) =>
  Effect.gen(function* () {
    const { state } = work
    if (failures.size === 0) return
    const concerned = [...sent, ...state.queue.ops]
    const all = new Map(failures)
    const failed = new Map<string, Array<FailedElement>>()
    for (let isGrown = true; isGrown; ) {
      isGrown = false
      for (const op of state.queue.ops) {
        if (all.has(op.opId) || Bundle.mayLand(op)) continue
        const on = op.dependsOn.find((index) =>
          concerned.some(
            (other) => other.requestId === op.requestId && other.index === index && all.has(other.opId)
          )
        )
        if (on === undefined) continue
        all.set(op.opId, dependencyFailed(on))
        isGrown = true
      }
    }
    for (const op of concerned) {
      const failure = all.get(op.opId)
      if (failure === undefined) continue
      if (op.prepared !== null && op.context !== null) yield* op.context.release(op.prepared)
      const { code, figures, message } = failure
      const own = failed.get(op.requestId) ?? []
      failed.set(op.requestId, [...own, { index: op.index, code, message, figures }])
      if (sent.includes(op)) continue
      // Later ops of its nonce key move up.
      const key = Choose.keyOf(op)
      if (!state.sequences.has(key)) state.sequences.set(key, lowestOf(state, key))
    }
    yield* work.opJournal.fail(
      state.lane,
      [...failed].map(([requestId, elements]) => ({ requestId, failed: elements }))
    )
    forget(state, [...all.keys()])
    yield* work.affected([...failed.keys()])
  })

/** Fails elements that can no longer land; the others wait. */
export const fail = (work: Work, failures: Failures, sent: ReadonlyArray<Bundle.Held> = []) =>
  Effect.gen(function* () {
    const { state } = work
    if (failures.size === 0) return
    const now = yield* MonotonicTime.millis
    const over = new Map(failures)
    for (const op of state.queue.ops) {
      const failure = failures.get(op.opId)
      if (failure === undefined || (mayGiveUp(state, op, now) && !Bundle.mayLand(op))) continue
      over.delete(op.opId)
      yield* pause(state, [op], `its signed bytes may land: ${failure.message}`)
    }
    yield* end(work, over, sent)
  })

/** Ends ops that a third party completed: looks up caller-signed ops; the wallets of the others exist. */
const finish = (work: Work, done: ReadonlyArray<Bundle.Held>): Effect.Effect<void, JournalError> =>
  Effect.gen(function* () {
    const [given, stand] = [done.filter((op) => op.given), done.filter((op) => !op.given)]
    const explained = yield* lookUp(work, given)
    const left = given.filter(({ opId }) => !explained.has(opId))
    yield* pause(work.state, left, "it has landed, by a node that is ahead")
    for (const { op } of stand) yield* work.foundDone(op)
    forget(work.state, stand)
    yield* work.affected(stand.map(({ requestId }) => requestId))
  })

/** Whether the prepared op must not be signed. Caller-signed bytes keep their price and wait for a cheap enough block. */
export const isStale = ({ state }: Work, { prepared, userOpHash }: Bundle.Held) =>
  Effect.map(
    Clock.currentTimeMillis,
    (now) =>
      prepared === null ||
      // The row has the hash of an earlier signature: a new one needs a new row.
      (prepared.userOpHash === null && userOpHash !== null) ||
      (prepared.goodUntil !== null && now >= prepared.goodUntil) ||
      ((prepared.kind === "op" || prepared.kind === "creation") &&
        isPricedOut(prepared.unsigned, state.newest?.baseFeePerGas ?? null))
  )

/** Signs the ops, each by its own settings; returns the signatures made so far. Refused ops fail; delayed ops pause. */
export const sign = (work: Work, ops: ReadonlyArray<Bundle.Held>) =>
  Effect.gen(function* () {
    const { state } = work
    const chosen = ops.flatMap(({ context, opId, prepared }) =>
      prepared === null || prepared.kind === "direct" || context?.kind !== "ops"
        ? []
        : [{ opId, prepared, context }]
    )
    const signed = new Map<OpId, Sealed>()
    const refused = new Map<OpId, ElementFailure>()
    const away = new Map<OpId, string>()
    for (const [opId, signature] of yield* state.signatures.of(chosen, state.lane.signer)) {
      if (signature._tag === "signed") signed.set(opId, signature.op)
      else if (signature._tag === "refused") refused.set(opId, signature.failure)
      else away.set(opId, signature.why)
    }
    // Exposed ops without a signature may have landed.
    const explained = yield* lookUp(
      work,
      ops.filter(({ exposed, opId }) => exposed && !signed.has(opId))
    )
    for (const [opId, why] of away) if (!explained.has(opId)) yield* pause(state, [opId], why)
    for (const opId of explained) refused.delete(opId)
    yield* fail(work, refused)
    return signed
  })

const notMade = obstacle("it was not prepared again")

/** Sorts ops by the result of their preparation. */
const sorted = (
  ops: ReadonlyArray<Bundle.Held>,
  answer: Result.Result<ReadonlyMap<OpId, Prepared>, Obstacle>
) => {
  const made: Array<readonly [Bundle.Held, PreparedOp]> = []
  const failed = new Map<OpId, ElementFailure>()
  const done: Array<Bundle.Held> = []
  const away: Array<readonly [Bundle.Held, string]> = []
  for (const op of ops) {
    const each = Result.isFailure(answer) ? answer.failure : (answer.success.get(op.opId) ?? notMade)
    if (each._tag === "prepared") made.push([op, each.prepared])
    else if (each._tag === "failed") failed.set(op.opId, each.failure)
    else if (each._tag === "done") done.push(op)
    else away.push([op, each.why])
  }
  return { made, failed, done, away }
}

/** Replaces ops by their new rows or nonces; null: the op is no longer ready. */
const replace = (
  { state }: Work,
  made: ReadonlyArray<readonly [Bundle.Held, PreparedOp]>,
  rows: ReadonlyArray<OpId | null>
): void => {
  for (const [place, [op, prepared]] of made.entries()) replaceHeld(state, op, rows[place] ?? null, prepared)
}

/** Prepares ops again under their nonces; writes changes, and fails failed ops. `isLookedUp`: they were just looked up. */
export const prepareAgain = (
  work: Work,
  ops: ReadonlyArray<Bundle.Held>,
  isLookedUp = false
): Effect.Effect<void, JournalError> =>
  Effect.gen(function* () {
    const { opJournal, preparing, state } = work
    for (const [context, own] of Map.groupBy(ops, (op) => op.context)) {
      if (context === null) continue
      const rows = own.map(({ op }) => op)
      const { away, done, failed, made } = sorted(own, yield* Effect.result(preparing.again(context, rows)))
      for (const [op, why] of away) yield* pause(state, [op], why)
      if (made.length > 0) {
        const prepared = made.map(([, each]) => each)
        replace(work, made, yield* opJournal.renew(state.lane, prepared))
        // They have the node's current price: an older block's base fee would make them stale forever.
        if (state.newest !== null) state.newest = { ...state.newest, baseFeePerGas: null }
      }
      const doubtful = isLookedUp ? [] : own.filter(({ exposed, opId }) => exposed && failed.has(opId))
      for (const opId of yield* lookUp(work, doubtful)) failed.delete(opId)
      yield* fail(work, failed)
      yield* finish(work, done)
    }
  })

/** Writes ops prepared under other nonces: all, or none. */
const moveTo = (
  work: Work,
  ops: ReadonlyArray<Bundle.Held>,
  making: Effect.Effect<ReadonlyMap<OpId, Prepared>, Obstacle>
) =>
  Effect.gen(function* () {
    const { opJournal, state } = work
    const { away, done, failed, made } = sorted(ops, yield* Effect.result(making))
    if (done.length > 0) return yield* finish(work, done)
    // The others move up after these are gone.
    if (failed.size > 0) return yield* fail(work, failed)
    const [first] = away
    if (first !== undefined) return yield* pause(state, ops, first[1])
    const prepared = made.map(([, each]) => each)
    const result = yield* opJournal.renumber(state.lane, prepared)
    if (result._tag === "renumbered") return replace(work, made, result.opIds)
    // The journal knows more than this state; the cached sequences may be outdated.
    for (const op of ops) state.sequences.delete(Choose.keyOf(op))
    state.queue = Queue.empty
    yield* pause(state, ops, "the nonces that ops were to have are taken")
  })

/**
 * Closes gaps that failures left, by moving ops to lower sequences. Reads the chain first: another holder of the wallet's keys
 * may have used them.
 */
export const renumber = (work: Work, gaps: Choose.Choice<Bundle.Held>["renumbered"]) =>
  Effect.gen(function* () {
    const { state } = work
    const known = new Map(gaps.map(({ op }) => [Choose.keyOf(op), state.sequences.get(Choose.keyOf(op))]))
    for (const key of known.keys()) state.sequences.delete(key)
    yield* lookUp(work, [...new Map(gaps.map(({ op }) => [Choose.keyOf(op), op])).values()])
    const moved = gaps.filter(({ op }) => {
      const sequence = state.sequences.get(Choose.keyOf(op))
      return sequence !== undefined && sequence === known.get(Choose.keyOf(op))
    })
    for (const [context, own] of Map.groupBy(moved, ({ op }) => op.context)) {
      if (context === null) continue
      const ops = own.map(({ op }) => op)
      const rows = own.map(({ op, sequence }) => ({ ...op.op, sequence }))
      yield* moveTo(work, ops, work.preparing.again(context, rows))
    }
  })

const nonceLost = elementFailure("execution_failed", Reasons.text("nonceBlocked"))

/** Gives new nonces to ops that can no longer land; caller-signed bytes, whose nonces are fixed, fail. */
export const revive = (
  work: Work,
  dead: ReadonlyArray<Bundle.Held>,
  whyOf: (op: Bundle.Held) => ElementFailure = () => nonceLost
) =>
  Effect.gen(function* () {
    const { state } = work
    const now = yield* MonotonicTime.millis
    if (!dead.every((op) => mayGiveUp(state, op, now)))
      return yield* pause(state, dead, "its nonce is used, and what the journal has lost may land")
    yield* end(work, new Map(dead.flatMap((op) => (op.given ? [[op.opId, whyOf(op)]] : []))))
    const own = dead.filter(({ given }) => !given)
    for (const [context, ops] of Map.groupBy(own, (op) => op.context)) {
      if (context === null) continue
      const rows = ops.map(({ op }) => op)
      yield* moveTo(work, ops, work.preparing.anew(context, rows))
    }
  })

/** Asks the chain why ops fail because of its state. Returns the explained ops, which have changed or will. */
export const lookUp = (
  work: Work,
  ops: ReadonlyArray<Bundle.Held>
): Effect.Effect<ReadonlySet<OpId>, JournalError> =>
  Effect.gen(function* () {
    const { state } = work
    const explained = new Set<OpId>()
    const stale: Array<Bundle.Held> = []
    const dead = new Map<Bundle.Held, ElementFailure>()
    const asked = ops.flatMap((op) => (op.context?.kind === "ops" ? [{ op, context: op.context }] : []))
    // Together: all ops of a nonce key ask the same question.
    const answers = yield* Effect.forEach(
      asked,
      ({ context, op }) => Effect.catch(work.lookUp(op, context, !isFresh(state, op.op)), Effect.succeed),
      { concurrency: "unbounded" }
    )
    for (const [place, { op }] of asked.entries()) {
      const found = answers[place]
      if (found === undefined) continue
      // Otherwise its nonce is the next one.
      const sequence = found._tag === "sequence" ? found.sequence : op.sequence
      const isOpen = found._tag === "stale" || found._tag === "waits" || found._tag === "nothing"
      if (isOpen || found._tag === "sequence") state.sequences.set(Choose.keyOf(op), sequence)
      if (found._tag !== "nothing" && (found._tag !== "sequence" || sequence !== op.sequence))
        explained.add(op.opId)
      if (found._tag === "landed") {
        forget(state, [op])
        yield* work.affected([op.requestId])
      }
      // Until the use of its nonce is settled.
      if (sequence > op.sequence) yield* pause(state, [op], "its nonce is used")
      if (found._tag === "waits") yield* pause(state, [op], "its signed bytes may land")
      if (found._tag === "Obstacle") yield* pause(state, [op], found.why)
      if (found._tag === "stale") stale.push(op)
      if (found._tag === "dead") dead.set(op, found.why)
    }
    yield* prepareAgain(work, stale, true)
    yield* revive(work, [...dead.keys()], (op) => dead.get(op) ?? nonceLost)
    return explained
  })

const notIncluded = elementFailure(
  "execution_failed",
  Reasons.text("notIncluded", { tries: Rejection.mostLacked })
)

/**
 * Transactions were mined without these ops, although they had passed: each component goes separately, a limited number of
 * times.
 */
export const noteLacked = (work: Work, ops: ReadonlyArray<Bundle.Held>) =>
  Effect.gen(function* () {
    const { state } = work
    const components = Queue.componentsOf(state.queue.ops)
    const failed = new Map<OpId, ElementFailure>()
    const own = Map.groupBy(ops, ({ opId }) => components.get(opId) ?? "")
    for (const [component, some] of own)
      if (stepOf(state, component, { _tag: "lacked" }))
        for (const { opId } of some) failed.set(opId, notIncluded)
    yield* fail(work, failed)
  })

/** Judges a component by its ops' revert data, from a transaction with or without other components. */
export const blame = (
  work: Work,
  ops: ReadonlyArray<Bundle.Held>,
  refused: ReadonlyMap<OpId, Hex.Hex>,
  {
    componentOf,
    ...how
  }: {
    readonly isAlone: boolean
    readonly isNewest: boolean
    readonly componentOf: (op: Bundle.Held) => string
  }
) =>
  Effect.gen(function* () {
    const { state } = work
    const own = ops.filter(({ opId }) => refused.has(opId))
    const dataOf = ({ opId }: Bundle.Held): Hex.Hex => refused.get(opId) ?? Hex.empty
    const isLate = (op: Bundle.Held) => FailedOp.isOutOfTime(dataOf(op))
    const isDoubtful = (op: Bundle.Held) =>
      FailedOp.isOutdated(dataOf(op)) || FailedOp.isSignature(dataOf(op)) || isLate(op)
    const explained = yield* lookUp(work, own.filter(isDoubtful))
    const left = own.filter(({ opId }) => !explained.has(opId))
    const late = left.filter(isLate)
    yield* prepareAgain(work, late)
    // By the chain's clock, which may stop while the service's continues.
    yield* pause(state, late, "its time was over, or had not come")
    // The node simulates and answers on different blocks.
    const contradicted = how.isAlone ? left.filter((op) => FailedOp.isOutdated(dataOf(op))) : []
    yield* pause(state, contradicted, "the node contradicts itself about its nonce or its wallet")
    const failed = new Map<OpId, ElementFailure>()
    for (const op of left) {
      if (isLate(op) || contradicted.includes(op)) continue
      if (!stepOf(state, componentOf(op), { _tag: "refused", ...how })) continue
      const reason = yield* work.preparing.revertOf(op.op, dataOf(op))
      failed.set(op.opId, elementFailure("execution_failed", Reasons.text("reverted", { reason })))
    }
    yield* fail(work, failed)
  })
