import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Scheduler from "effect/Scheduler"
import type * as TestClock from "effect/testing/TestClock"

interface Sleeper {
  readonly until: number
  readonly wake: () => void
}

const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

/**
 * The clock that `TestClock` works with, in place of Effect's own, which waits some milliseconds of the machine's time and
 * looks at every fiber whenever somebody wakes: this one knows from the scheduler when all of them rest.
 */
export class SteppedClock implements TestClock.TestClock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  private now = 0
  private readonly sleepers = new Set<Sleeper>()
  private begun = 0
  private waiting = 0

  readonly scheduler: Scheduler.Scheduler = {
    shouldYield: (fiber) => Scheduler.defaultScheduler.shouldYield(fiber),
    scheduleTask: (task, priority, fiber) => {
      this.begun += 1
      this.waiting += 1
      Scheduler.defaultScheduler.scheduleTask(
        () => {
          this.waiting -= 1
          task()
        },
        priority,
        fiber
      )
    }
  }

  currentTimeMillisUnsafe(): number {
    return this.now
  }

  currentTimeNanosUnsafe(): bigint {
    return BigInt(Math.floor(this.now * 1_000_000))
  }

  readonly currentTimeMillis = Effect.sync(() => this.now)
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly sleeps = Effect.sync(() => Chunk.fromIterable([...this.sleepers].map(({ until }) => until)))
  readonly save = Effect.die(new Error("it keeps no times"))
  readonly adjustWith = () => () => Effect.die(new Error("it is adjusted alone"))

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const until = this.now + Duration.toMillis(duration)
      if (until <= this.now) return resume(Effect.void)
      const sleeper = { until, wake: () => resume(Effect.void) }
      this.sleepers.add(sleeper)
      return Effect.sync(() => void this.sleepers.delete(sleeper))
    })
  }

  /** Until no fiber has anything to do, for two turns of the event loop: some go on by one. */
  private readonly rest: Effect.Effect<void> = Effect.suspend(() => {
    const { begun } = this
    // The two fibers' steps of these turns themselves are counted.
    return Effect.flatMap(Effect.andThen(turn, turn), () =>
      this.waiting > 0 || this.begun > begun + 2 ? this.rest : Effect.void
    )
  })

  private wakeUntil(end: number): Effect.Effect<void> {
    return Effect.flatMap(this.rest, () => {
      const [first] = [...this.sleepers].sort((one, other) => one.until - other.until)
      if (first === undefined || first.until > end) {
        this.now = end
        return Effect.void
      }
      this.now = Math.max(this.now, first.until)
      this.sleepers.delete(first)
      first.wake()
      return this.wakeUntil(end)
    })
  }

  /** Time passes; who has slept long enough goes on, the first one first, each at its time. */
  adjust(duration: Duration.Input): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.andThen(this.wakeUntil(this.now + Duration.toMillis(duration)), this.rest)
    )
  }

  setTime(time: number): Effect.Effect<void> {
    return Effect.andThen(this.wakeUntil(time), this.rest)
  }

  /** Time passes at once, and the event loop turns. */
  step(duration: Duration.Input): Effect.Effect<void> {
    return Effect.andThen(
      Effect.sync(() => {
        this.now += Duration.toMillis(duration)
        const awake = [...this.sleepers].filter(({ until }) => until <= this.now)
        for (const sleeper of awake.sort((one, other) => one.until - other.until)) {
          this.sleepers.delete(sleeper)
          sleeper.wake()
        }
      }),
      turn
    )
  }
}

/** The clock of `run`. */
export const step = (duration: Duration.Input): Effect.Effect<void> =>
  Effect.clockWith((clock) =>
    clock instanceof SteppedClock ? clock.step(duration) : Effect.die(new Error("the clock is another one"))
  )

/** Runs it with a clock of its own, which stands still between the steps. */
export const run = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const clock = new SteppedClock()
    return Effect.provideService(
      Effect.provideService(effect, Clock.Clock, clock),
      Scheduler.Scheduler,
      clock.scheduler
    )
  })
