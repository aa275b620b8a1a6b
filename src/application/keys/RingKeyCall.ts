import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { KeyProviderError } from "../ports/KeyProvider.js"
import * as Wait from "../runtime/Wait.js"

/**
 * A key of the ring cannot be used. `message` is for the operator and holds no secret.
 *
 * - the provider's reasons: `unavailable`, `refused`, `notFound`, `unsuitable`
 * - `addressMismatch`: the key differs from the configured one
 * - `wrongSignature`: the provider's answer is not a signature of this key
 */
export class RingKeyError extends Data.TaggedError("RingKeyError")<{
  readonly reason: KeyProviderError["reason"] | "addressMismatch" | "wrongSignature"
  readonly message: string
}> {}

/** Bounds on one key's use of its provider. */
export interface RingKeyLimits {
  /** Time limit of one call, milliseconds. A provider whose calls must not be repeated gets `totalMillis`. */
  readonly attemptMillis: number
  /** Time limit of one signature, including all attempts and pauses; below `Keys.withPatience`. */
  readonly totalMillis: number
  /** Time limit for reading the public key, including all attempts. */
  readonly resolveMillis: number
  /**
   * Most concurrent signing calls. It matches the ops of a bundle, so that a bundle takes the time of one call; it is
   * low for calls with many digests, so that digests travel together.
   */
  readonly inFlight: number
}

export const defaults: RingKeyLimits = {
  attemptMillis: 8_000,
  totalMillis: 25_000,
  resolveMillis: 10_000,
  inFlight: 64
}

/** Bounds of calls that make no signature: opening the provider, fetching a public key. */
export const ofResolving = ({ attemptMillis, resolveMillis }: RingKeyLimits) => ({
  attemptMillis,
  totalMillis: resolveMillis
})

const silent = new KeyProviderError({ reason: "unavailable", message: "no answer in time" })

/** Names the crash without its text, which may quote the data to sign or send. */
export const crash = (defect: unknown): KeyProviderError =>
  new KeyProviderError({
    reason: "refused",
    message: `the provider's adapter crashed (${defect instanceof Error ? defect.name : typeof defect})`
  })

/** 0.2, 0.4, 0.8... up to 3 seconds, each shortened or lengthened by up to a fifth. */
const backoff = Schedule.jittered(
  Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("3 seconds")])
)

/**
 * A provider's call: ends after `attemptMillis`, is repeated while it is `unavailable`, and stops at `totalMillis` even
 * where the fiber is uninterruptible. A late answer is dropped.
 */
export const withPatience = <A>(
  call: () => Effect.Effect<A, KeyProviderError>,
  { attemptMillis, totalMillis }: { readonly attemptMillis: number; readonly totalMillis: number }
): Effect.Effect<A, KeyProviderError> =>
  Effect.suspend(() => {
    let last = silent
    return Effect.suspend(call).pipe(
      Effect.catchDefect((defect) => Effect.fail(crash(defect))),
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

export const ofRing = ({ message, reason }: KeyProviderError): RingKeyError =>
  new RingKeyError({ reason, message })
