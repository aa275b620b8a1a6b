import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Metrics from "../observe/Metrics.js"
import { type RateLimit, RateLimitError } from "../ports/RateLimit.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import * as Wait from "../runtime/Wait.js"

/** Time limit of one count, milliseconds. */
const patienceMillis = 2_000

/** Time that the second store counts before the first is tried again, milliseconds. */
const awayMillis = 5_000

const silent = new RateLimitError({ message: "the rate limit store does not answer" })

/** A count that takes too long fails. */
export const withPatience = ({ take }: RateLimit["Service"]): RateLimit["Service"] => ({
  take: (account, limits) => Wait.within(take(account, limits), patienceMillis, () => silent)
})

/**
 * Counts in the first store; while that fails, in the second, whose windows start empty. So in the minute and the hour
 * of a switch an account may have up to twice its requests. Null: without the first store, requests are refused.
 */
export const withFailover = (
  first: RateLimit["Service"],
  second: RateLimit["Service"] | null
): RateLimit["Service"] => {
  let awayUntil = 0
  return {
    take: (account, limits) =>
      Effect.gen(function* () {
        const now = yield* MonotonicTime.millis
        const fallBack = second === null ? Effect.fail(silent) : second.take(account, limits)
        if (now < awayUntil) return yield* fallBack
        const wasAway = awayUntil > 0
        // A single request tests whether the store is back.
        if (wasAway) awayUntil = now + awayMillis
        const counted = yield* Effect.result(first.take(account, limits))
        if (counted._tag === "Success") {
          awayUntil = 0
          if (wasAway) yield* Metric.update(Metrics.rateLimitStoreAway, 0)
          if (wasAway) yield* Effect.logInfo("requests are counted as usual again")
          return counted.success
        }
        if (!wasAway && awayUntil === 0)
          yield* Effect.annotateLogs(
            Effect.logError(
              second === null
                ? "rate limit store unavailable; requests refused"
                : "requests are counted in the database"
            ),
            { detail: counted.failure.message }
          )
        awayUntil = now + awayMillis
        yield* Metric.update(Metrics.rateLimitStoreAway, 1)
        return yield* fallBack
      })
  }
}
