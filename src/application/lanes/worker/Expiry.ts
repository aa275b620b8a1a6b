import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Overdue } from "../../ports/journal/Records.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import { delayOf, forget, isFresh, type Work } from "./LaneState.js"
import * as Reprice from "./Reprice.js"
import * as Reconcile from "./rules/Reconcile.js"

/** How often a lane's requests are held against the time, milliseconds, and how many of them at a time. */
const everyMillis = 2_000
const most = 256

/** Those of the overdue requests that are given up, the rest of those of which something is exposed. */
const giveUp = (work: Work, before: number, mayExpire: (row: Overdue) => boolean) =>
  Effect.gen(function* () {
    const { expiry, state } = work
    const expired = new Map<string, Overdue>()
    for (let after: string | undefined, isOver = false; !isOver; ) {
      const rows = yield* expiry.overdue(state.lane, before, most, after)
      for (const row of rows) {
        // What prices transactions of others anew signs under their names, as it has noted.
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
 * Gives up requests of which nothing was exposed in time, however long the worker has been away, and what is left of the others
 * that long after their last signature or inclusion: not while a nonce of the lane is unknown, nor while the clock is not
 * trusted. What was exposed goes on to its end.
 *
 * Gotchas: the lane's settings and nodes may be gone. Where the nonces of the lane could not be compared with the chain for as
 * long as requests have, what was accepted before the claim expires without that.
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
    // What a restored journal has lost of ops at somebody else's bundler no nonce of the EOA tells.
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
