import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import * as Time from "./Time.js"

/**
 * Closes the scope when any fiber of the effect reaches step `number`, or all fibers rest earlier. Returns whether the
 * effect and the scope have ended by then without the clock moving.
 */
export const step = <A, E, R>(
  number: number,
  effect: Effect.Effect<A, E, R>,
  scope: Scope.Closeable
): Effect.Effect<boolean, never, R> =>
  Effect.gen(function* () {
    let steps = 0
    let closing: Fiber.Fiber<void> | null = null
    const close = () => {
      closing ??= Effect.runFork(Scope.close(scope, Exit.void))
    }
    const inner = new Scheduler.MixedScheduler()
    const scheduler: Scheduler.Scheduler = {
      executionMode: inner.executionMode,
      makeDispatcher: () => inner.makeDispatcher(),
      shouldYield: (fiber) => {
        steps += 1
        if (steps !== number) return inner.shouldYield(fiber)
        close()
        // Closes between two steps, as from outside: the fiber would still take the next step.
        return true
      }
    }
    const own = yield* Effect.forkChild(Effect.provideService(effect, Scheduler.Scheduler, scheduler))
    yield* Time.settle
    close()
    yield* Time.settle
    return [own, closing].every((fiber) => fiber?.pollUnsafe() !== undefined)
  })
