import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

interface Sleeper {
  readonly until: number
  readonly wake: () => void
}

/**
 * Time that passes by steps, as with `TestClock`, which looks at every fiber of the test for ten milliseconds with each:
 * here a step is a turn of the event loop.
 */
export class SteppedClock implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  private now = 0
  private readonly sleepers = new Set<Sleeper>()

  unsafeCurrentTimeMillis(): number {
    return this.now
  }

  unsafeCurrentTimeNanos(): bigint {
    return BigInt(this.now) * 1_000_000n
  }

  readonly currentTimeMillis = Effect.sync(() => this.now)
  readonly currentTimeNanos = Effect.sync(() => this.unsafeCurrentTimeNanos())

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.async((resume) => {
      const sleeper = {
        until: this.now + Duration.toMillis(duration),
        wake: () => resume(Effect.void)
      }
      this.sleepers.add(sleeper)
      return Effect.sync(() => void this.sleepers.delete(sleeper))
    })
  }

  /** Time passes; who has slept long enough goes on, the first one first. */
  step(duration: Duration.DurationInput): Effect.Effect<void> {
    return Effect.zipRight(
      Effect.sync(() => {
        this.now += Duration.toMillis(duration)
        const awake = [...this.sleepers].filter(({ until }) => until <= this.now)
        for (const sleeper of awake.sort((one, other) => one.until - other.until)) {
          this.sleepers.delete(sleeper)
          sleeper.wake()
        }
      }),
      Effect.promise(() => new Promise((turned) => setImmediate(turned)))
    )
  }
}

/** The clock of `run`. */
export const step = (duration: Duration.DurationInput): Effect.Effect<void> =>
  Effect.clockWith((clock) =>
    clock instanceof SteppedClock ? clock.step(duration) : Effect.dieMessage("the clock is another one")
  )

/** Runs it with a clock of its own, which stands still between the steps. */
export const run = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => Effect.withClock(effect, new SteppedClock()))
