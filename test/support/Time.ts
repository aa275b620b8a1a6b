import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { vi } from "vitest"

/** Lets fibers run until only time can wake them; fibers that wait for each other take several turns of the event loop. */
export const settle: Effect.Effect<void> = Effect.promise(async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done))
})

const settled = (effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.andThen(settle, Effect.andThen(effect, settle))

/** Advances the clock and lets fibers run before and after. */
export const adjust = (by: Duration.Input): Effect.Effect<void> => settled(TestClock.adjust(by))

/**
 * Holds monotonic time until the result is called, as on an infinitely fast machine: caches keep their age, and no loop
 * uses up its slice of a turn. Waits for a later time do not end.
 */
export const hold = (): (() => void) => {
  const clocks = [
    vi.spyOn(performance, "now").mockReturnValue(performance.now()),
    vi.spyOn(process.hrtime, "bigint").mockReturnValue(process.hrtime.bigint())
  ]
  return () => {
    for (const clock of clocks) clock.mockRestore()
  }
}

export const setTime = (at: number): Effect.Effect<void> => settled(TestClock.setTime(at))
