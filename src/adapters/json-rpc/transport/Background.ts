import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

/** Work that serves several askers and so belongs to none of them. It ends with the scope that it was made in. */
export interface Background {
  /**
   * Starts the work, which ends early when the scope closes and never begins when it is closed already. `last` runs
   * after it in any case.
   */
  readonly fork: (work: Effect.Effect<void>, last: Effect.Effect<void>) => Effect.Effect<void>
}

export const make: Effect.Effect<Background, never, Scope.Scope> = Effect.suspend(() => {
  const fibers = new Set<Fiber.RuntimeFiber<void>>()
  let closed = false
  const close = Effect.suspend(() => {
    closed = true
    return Fiber.interruptAll([...fibers])
  })
  return Effect.as(
    Effect.addFinalizer(() => close),
    {
      fork: (work, last) =>
        Effect.uninterruptible(
          Effect.gen(function* () {
            if (closed) return yield* last
            const fiber = yield* Effect.forkDaemon(Effect.ensuring(Effect.interruptible(work), last))
            fibers.add(fiber)
            fiber.addObserver(() => fibers.delete(fiber))
          })
        )
    }
  )
})
