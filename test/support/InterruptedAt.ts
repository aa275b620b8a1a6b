import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"

/** Runs the effect in a fiber that is interrupted at step `number`, and waits for its end. */
export const step = <A, E, R>(
  number: number,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<void, never, R> =>
  Effect.gen(function* () {
    let steps = 0
    let own: Fiber.Fiber<A, E> | null = null
    const inner = new Scheduler.MixedScheduler()
    const scheduler: Scheduler.Scheduler = {
      executionMode: inner.executionMode,
      makeDispatcher: () => inner.makeDispatcher(),
      shouldYield: (fiber) => {
        if (fiber === own) {
          steps += 1
          if (steps === number) {
            own.interruptUnsafe()
            // Interrupts between two steps, as from outside: the fiber would still take the next step.
            return true
          }
        }
        return inner.shouldYield(fiber)
      }
    }
    own = yield* Effect.forkChild(
      Effect.provideService(Effect.andThen(Effect.yieldNow, effect), Scheduler.Scheduler, scheduler)
    )
    yield* Fiber.await(own)
  })
