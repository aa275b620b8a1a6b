import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/**
 * The effect, run at most once at a time: whoever asks meanwhile waits for the run under way. What it succeeds with is
 * kept; after a failure the next one to ask runs it again. A run belongs to nobody: it goes on without its first asker.
 */
export const make = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const scope = yield* Effect.scope
  const context = yield* Effect.context<R>()
  // The fiber is kept, not its result: to begin it takes no time in which its first asker could be interrupted.
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
