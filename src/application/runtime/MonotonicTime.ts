import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const nanosPerMilli = 1_000_000

/**
 * Milliseconds since a moment of the process, for all durations and waits. It advances evenly when the machine's clock
 * is set, which could end a wait immediately, or extend it by as much as the clock was set back. Never store it or
 * compare it with other processes' times: those use the wall clock.
 */
export const millis: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos) / nanosPerMilli
)
