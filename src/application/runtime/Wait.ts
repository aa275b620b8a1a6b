import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * Waits for the effect no longer than that, and neither for its end when it is late or not wanted any more: it is
 * interrupted, and left alone. Whether the wait may be interrupted is its parent's affair.
 */
export const atMost = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  millis: number,
  late: () => Effect.Effect<A, E2>
): Effect.Effect<A, E | E2, R> =>
  Effect.acquireUseRelease(
    Effect.forkDetach(effect, { startImmediately: true }),
    (fiber) => Effect.timeoutOrElse(Fiber.join(fiber), { duration: millis, orElse: late }),
    (fiber) => Effect.sync(() => fiber.interruptUnsafe())
  )

/** The same wait, which may be interrupted also where its parent may not be. */
export const within = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  millis: number,
  late: () => Effect.Effect<A, E2>
): Effect.Effect<A, E | E2, R> => Effect.interruptible(atMost(effect, millis, late))
