import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Runs the effect on a machine whose clock is ahead by `millis()`; durations are unaffected. */
export const settable =
  (millis: () => number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.clockWith((clock) => {
      const ahead = () => BigInt(millis()) * 1_000_000n
      return Effect.provideService(effect, Clock.Clock, {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + millis(),
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + ahead(),
        currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis()),
        currentTimeNanos: Effect.map(clock.currentTimeNanos, (now) => now + ahead()),
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        monotonicTimeNanos: clock.monotonicTimeNanos,
        sleep: (duration) => clock.sleep(duration)
      })
    })

/** Runs the effect as if an operator had moved the machine's clock by `millis`. */
export const by = (millis: number) => settable(() => millis)
