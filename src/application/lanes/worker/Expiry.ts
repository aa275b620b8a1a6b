import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Overdue } from "../../ports/journal/Records.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import { delayOf, forget, isFresh, type Work } from "./LaneState.js"
import * as Reprice from "./Reprice.js"
import * as Reconcile from "./rules/Reconcile.js"

/** Interval of a lane's expiry checks, milliseconds, and requests per read. */
const everyMillis = 2_000
const most = 256

const giveUp = (work: Work, before: number, mayExpire: (row: Overdue) => boolean) =>
  Effect.gen(function* () {
    const { expiry, state } = work
    const expired = new Map<string, Overdue>()
    for (let after: string | undefined, isOver = false; !isOver; ) {
      const rows = yield* expiry.overdue(state.lane, before, most, after)
      for (const row of rows) {
        // A repricing request re-signs other requests' transactions, as its note records.
        const isOthers = row.endpoint === Reprice.endpoint && row.isNoted
        if (isOthers || !mayExpire(row)) continue
        const became = yield* expiry.cancel(row, delayOf(state, row.requestId))
        if (became === (row.isExposed ? "kept" : "final")) expired.set(row.requestId, row)
      }
      after = rows.at(-1)?.requestId
      isOver = rows.length < most
    }
    return expired
  })

/**
 * Expires requests without exposed ops, however long the worker was away, and the remaining elements of other requests that
 * long after their last signature or inclusion. Skipped while a nonce of the lane is unknown or the clock is not trusted.
 * Exposed ops run to their end.
 *
 * Gotchas: the lane's settings and nodes may be gone. If nonces could not be compared with the chain for the whole expiry time,
 * requests accepted before the claim expire without that comparison.
 */
export const expire = (work: Work) =>
  Effect.gen(function* () {
    const { expiry, requestJournal, state } = work
    const now = yield* MonotonicTime.millis
    if (now < state.expiresAt) return
    state.expiresAt = now + everyMillis
    const [oldest] =
      state.queue.ops.length > 0 ? state.queue.ops : yield* requestJournal.unopened(state.lane, 1)
    if (oldest === undefined || !(yield* expiry.mayExpire)) return
    const { remoteBundler, requestExpiryMillis } = yield* expiry.profileOf(oldest.accountId, state.lane)
    const held = now - state.claimed.since
    // The EOA's nonces do not show ops at a remote bundler that a restored journal lost.
    const isKnown =
      remoteBundler === null
        ? state.knownTo !== null || held >= requestExpiryMillis
        : held >= Reconcile.lostMillis
    const before = (yield* Clock.currentTimeMillis) - requestExpiryMillis
    const expired = yield* giveUp(work, before, (row) =>
      isFresh(state, row)
        ? Reconcile.maySign(state.reconcile)
        : isKnown && Reconcile.mayGiveUp(state.reconcile, now, row.acceptedAt)
    )
    if (expired.size === 0) return
    forget(
      state,
      state.queue.ops.filter(({ op: { exposed, requestId } }) => expired.has(requestId) && !exposed)
    )
    for (const { isExposed, requestId } of expired.values())
      yield* Effect.annotateLogs(
        Effect.logWarning(isExposed ? "unsigned elements expired" : "request expired before signing"),
        { requestId }
      )
    yield* work.affected([...expired.keys()])
  })
