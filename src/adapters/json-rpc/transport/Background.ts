import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

/** Work that serves several askers and so belongs to none of them. It ends with the scope that it was made in. */
export interface Background {
  /**
   * Starts the work, with what the asker's fiber has in its context. It ends early when the scope closes and never
   * begins when it is closed already. `last` runs after it in any case.
   */
  readonly start: (asker: Fiber.Fiber<unknown, unknown>, work: Effect.Effect<void>, last: () => void) => void
}

export const make: Effect.Effect<Background, never, Scope.Scope> = Effect.suspend(() => {
  const fibers = new Set<Fiber.Fiber<void>>()
  let closed = false
  const close = Effect.suspend(() => {
    closed = true
    return Fiber.interruptAll([...fibers])
  })
  return Effect.as(
    Effect.addFinalizer(() => close),
    {
      start: (asker, work, last) => {
        if (closed) {
          last()
          return
        }
        const runtime = asker.context
        const fiber = Effect.runForkWith(runtime)(work)
        fibers.add(fiber)
        fiber.addObserver(() => {
          fibers.delete(fiber)
          last()
        })
      }
    }
  )
})
