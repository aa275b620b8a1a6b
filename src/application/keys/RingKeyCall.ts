import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { KeyProviderError } from "../ports/KeyProvider.js"
import * as Wait from "../runtime/Wait.js"

const silent = new KeyProviderError({ reason: "unavailable", message: "no answer in time" })

/** What crashed is named; its text is not shown, it may quote what was being signed or sent. */
const crashed = (defect: unknown): KeyProviderError =>
  new KeyProviderError({
    reason: "refused",
    message: `the provider's adapter crashed (${defect instanceof Error ? defect.name : typeof defect})`
  })

/** 0.2, 0.4, 0.8... up to 3 seconds, each shortened or lengthened by up to a fifth. */
const backoff = Schedule.jittered(
  Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("3 seconds")])
)

/**
 * A call of a provider: given up after `attemptMillis`, made again while it is `unavailable`, over at `totalMillis`
 * in any case, also where nothing may be interrupted. What a given-up call still answers is dropped.
 */
export const bounded = <A>(
  call: () => Effect.Effect<A, KeyProviderError>,
  { attemptMillis, totalMillis }: { readonly attemptMillis: number; readonly totalMillis: number }
): Effect.Effect<A, KeyProviderError> =>
  Effect.suspend(() => {
    let last = silent
    return Effect.suspend(call).pipe(
      Effect.catchDefect((defect) => Effect.fail(crashed(defect))),
      (attempt) => Wait.within(attempt, attemptMillis, () => silent),
      Effect.tapError((error) =>
        Effect.sync(() => {
          last = error
        })
      ),
      Effect.retry({
        schedule: Schedule.upTo(backoff, { duration: Duration.millis(totalMillis) }),
        while: ({ reason }) => reason === "unavailable"
      }),
      (attempts) => Wait.within(attempts, totalMillis, () => last)
    )
  })
