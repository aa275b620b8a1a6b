import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const nanosPerMilli = 1_000_000

/**
 * Milliseconds since a moment of the process, for everything that lasts or is waited for: they go on evenly when
 * somebody sets the machine's clock, which would end a wait at once or hold it up for as long as the clock was set back.
 * Not to be stored or compared with what another process has written: that is the time of the world.
 */
export const millis: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos) / nanosPerMilli
)
