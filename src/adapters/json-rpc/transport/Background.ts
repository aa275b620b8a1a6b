import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"

/** Work that serves several askers and so belongs to none of them. It ends with the scope that it was made in. */
export interface Background {
  /**
   * Starts the work, with what the asker's fiber has in its context. It ends early when the scope closes and never
   * begins when it is closed already. `last` runs after it in any case.
   */
  readonly start: (
    asker: Fiber.RuntimeFiber<unknown, unknown>,
    work: Effect.Effect<void>,
    last: () => void
  ) => void
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
      start: (asker, work, last) => {
        if (closed) {
          last()
          return
        }
        const runtime = Runtime.make({
          context: asker.currentContext,
          fiberRefs: asker.getFiberRefs(),
          runtimeFlags: Runtime.defaultRuntimeFlags
        })
        const fiber = Runtime.runFork(runtime)(work)
        fibers.add(fiber)
        fiber.addObserver(() => {
          fibers.delete(fiber)
          last()
        })
      }
    }
  )
})
