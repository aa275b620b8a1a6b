import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { KeyProviderError } from "../ports/KeyProvider.js"
import * as Wait from "../runtime/Wait.js"

/**
 * A key of the ring cannot be used. `message` is for the operator and holds no secret.
 *
 * - what its provider says: `unavailable`, `refused`, `notFound`, `unsuitable`
 * - `addressMismatch`: it is not the key that the configuration pins
 * - `wrongSignature`: its provider gave what is no signature of this key
 */
export class RingKeyError extends Data.TaggedError("RingKeyError")<{
  readonly reason: KeyProviderError["reason"] | "addressMismatch" | "wrongSignature"
  readonly message: string
}> {}

/** How much time and traffic one key may take of its provider. */
export interface RingKeyLimits {
  /** One call, milliseconds. A provider whose calls must not be made twice gets as much as `totalMillis`. */
  readonly attemptMillis: number
  /** One signature from asking to having it, all attempts and waits in between; below `Keys.bounded`. */
  readonly totalMillis: number
  /** Finding out the public key, all attempts. */
  readonly resolveMillis: number
  /**
   * Signing calls under way at once. As many as a bundle has ops, so that it takes the time of one call; few where a call
   * carries many digests, so that they travel together.
   */
  readonly inFlight: number
}

export const defaults: RingKeyLimits = {
  attemptMillis: 8_000,
  totalMillis: 25_000,
  resolveMillis: 10_000,
  inFlight: 64
}

/** The bounds of a call that no signature is made of: opening the provider, fetching a public key. */
export const ofResolving = ({ attemptMillis, resolveMillis }: RingKeyLimits) => ({
  attemptMillis,
  totalMillis: resolveMillis
})

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

/** What its provider says of a key, as the ring tells it. */
export const ofRing = ({ message, reason }: KeyProviderError): RingKeyError =>
  new RingKeyError({ reason, message })
