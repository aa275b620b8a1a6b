import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Runs it on a machine whose clock is ahead by what `millis` says at the moment: what lasts goes on as it would have. */
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

/** Runs it as after somebody has set the machine's clock by so much. */
export const by = (millis: number) => settable(() => millis)
