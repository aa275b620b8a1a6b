import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import type * as Scope from "effect/Scope"

/**
 * The effect, run at most once at a time: whoever asks meanwhile waits for the run under way. What it succeeds with is
 * kept; after a failure the next one to ask runs it again. A run belongs to nobody: it goes on without its first asker.
 */
export const make = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<Effect.Effect<A, E>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const context = yield* Effect.context<R>()
    let run: Deferred.Deferred<A, E> | null = null
    return Effect.suspend(() => {
      if (run !== null) return Deferred.await(run)
      const mine = Deferred.unsafeMake<A, E>(FiberId.none)
      run = mine
      return effect.pipe(
        Effect.provide(context),
        Effect.interruptible,
        Effect.onError(() =>
          Effect.sync(() => {
            run = null
          })
        ),
        Effect.onExit((exit) => Deferred.done(mine, exit)),
        Effect.forkIn(scope),
        Effect.zipRight(Deferred.await(mine))
      )
    })
  })
