import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * Runs the effect at most once at a time; concurrent callers wait for the current run. Keeps its success; after a
 * failure the next caller runs it again. A run continues when its first caller is interrupted.
 */
export const make = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const scope = yield* Effect.scope
  const context = yield* Effect.context<R>()
  // Caching the fiber, not its result, makes the start instant: the first caller cannot be interrupted in it.
  const begin: Effect.Effect<Fiber.Fiber<A, E>> = Effect.suspend(() =>
    effect.pipe(
      Effect.provide(context),
      Effect.interruptible,
      Effect.onError(() => forget),
      Effect.forkIn(scope)
    )
  )
  const [run, forget] = yield* Effect.cachedInvalidateWithTTL(
    Effect.uninterruptible(begin),
    Duration.infinity
  )
  // Without a wait, once it is there.
  let kept: Effect.Effect<A> | null = null
  const awaited = Effect.tap(Effect.flatten(Effect.flatMap(run, Fiber.await)), (made) =>
    Effect.sync(() => {
      kept = Effect.succeed(made)
    })
  )
  return Effect.suspend(() => kept ?? awaited)
})
