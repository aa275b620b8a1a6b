import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"

/** Waits with only the timer's fiber, and without any for a fiber that has ended. */
const join = <A, E, E2, R2>(
  awaited: Fiber.Fiber<A, E>,
  millis: number,
  late: () => Effect.Effect<A, E2, R2>
): Effect.Effect<A, E | E2, R2> =>
  Effect.withFiber(
    (fiber) =>
      awaited.pollUnsafe() ??
      Effect.callback<A, E | E2, R2>((resume) => {
        const timer = Effect.runForkWith(fiber.context)(Effect.sleep(millis))
        timer.addObserver((exit) => {
          if (Exit.isSuccess(exit)) resume(Effect.suspend(late))
        })
        awaited.addObserver((exit) => {
          timer.interruptUnsafe()
          resume(exit)
        })
        return Effect.sync(() => timer.interruptUnsafe())
      })
  )

/**
 * Waits at most this long for the effect. When it is late or no longer wanted, the effect is interrupted without
 * waiting for its end. The parent decides whether the wait may be interrupted.
 */
export const atMost = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  millis: number,
  late: () => Effect.Effect<A, E2>
): Effect.Effect<A, E | E2, R> =>
  Effect.acquireUseRelease(
    Effect.forkDetach(effect, { startImmediately: true }),
    (fiber) => join(fiber, millis, late),
    (fiber) => Effect.sync(() => fiber.interruptUnsafe())
  )

/** `atMost` that may be interrupted even where its parent may not be. */
export const within = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  millis: number,
  late: () => Effect.Effect<A, E2>
): Effect.Effect<A, E | E2, R> => Effect.interruptible(atMost(effect, millis, late))
