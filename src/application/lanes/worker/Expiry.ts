import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import { forget, type Work } from "./LaneState.js"
import * as Reconcile from "./rules/Reconcile.js"

/** How often a lane's requests are held against the time, milliseconds, and how many of them at a time. */
const everyMillis = 2_000
const most = 256

/**
 * Gives up requests of which nothing was exposed in time, however long the worker has been away: not while a nonce of the lane
 * is unknown, nor while the clock is not trusted. What was exposed goes on to its end.
 */
export const expire = (
  work: Work,
  { remoteBundler, requestExpiryMillis }: Pick<NetworkProfile, "remoteBundler" | "requestExpiryMillis">
) =>
  Effect.gen(function* () {
    const { expiry, state } = work
    const now = yield* MonotonicTime.millis
    if (now < state.expiresAt) return
    state.expiresAt = now + everyMillis
    // What a restored journal has lost of ops at somebody else's bundler no nonce of the EOA tells.
    const isKnown =
      remoteBundler === null ? state.knownTo !== null : now >= state.claimed.since + Reconcile.lostMillis
    const before = (yield* Clock.currentTimeMillis) - requestExpiryMillis
    if (!isKnown || !Reconcile.mayGiveUp(state.reconcile, now, before)) return
    if (!(yield* expiry.mayExpire)) return
    const expired: Array<string> = []
    for (const { isExposed, requestId } of yield* expiry.overdue(state.lane, before, most))
      if (!isExposed && (yield* expiry.cancel(requestId)) === "final") expired.push(requestId)
    if (expired.length === 0) return
    forget(
      state,
      state.queue.ops.filter(({ requestId }) => expired.includes(requestId))
    )
    yield* Effect.forEach(
      expired,
      (requestId) => Effect.annotateLogs(Effect.logWarning("request expired before signing"), { requestId }),
      { discard: true }
    )
    yield* work.affected(expired)
  })
