import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Runs it on a machine whose clock is ahead by what `millis` says at the moment: what lasts goes on as it would have. */
export const settable =
  (millis: () => number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.clockWith((clock) =>
      Effect.provideService(effect, Clock.Clock, {
        [Clock.ClockTypeId]: Clock.ClockTypeId,
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + millis(),
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
        currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis()),
        currentTimeNanos: clock.currentTimeNanos,
        sleep: (duration) => clock.sleep(duration)
      })
    )

/** Runs it as after somebody has set the machine's clock by so much. */
export const by = (millis: number) => settable(() => millis)
