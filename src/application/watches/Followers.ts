import * as Effect from "effect/Effect"
import { Replicas } from "../ports/Replicas.js"
import { Watches } from "../ports/Watches.js"
import * as Follower from "./Follower.js"
import type * as Telling from "./Telling.js"

/** Polling interval for nodes without a reader. */
const pollMillis = 1_000

/**
 * Reads the nodes of watches until the scope closes, each in a separate fiber, so that a slow node delays no other. One
 * process reads each node. `most` limits one step.
 */
export const startWith = Effect.fnUntraced(function* (most?: Telling.Bounds) {
  const watches = yield* Watches
  const { process } = yield* Replicas
  const scope = yield* Effect.scope
  const followed = new Set<number>()
  const failed = (cause: unknown) => Effect.logDebug("watches' new events unavailable", cause)
  const look = Effect.gen(function* () {
    for (const source of yield* watches.sources(process)) {
      if (followed.has(source.source)) continue
      followed.add(source.source)
      const own = Follower.follow(source, process, most).pipe(
        Effect.catchCause(failed),
        Effect.ensuring(Effect.ignore(watches.release(source.source, process))),
        Effect.ensuring(Effect.sync(() => followed.delete(source.source)))
      )
      yield* Effect.forkIn(Effect.interruptible(own), scope)
    }
  })
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.catchCause(look, failed), Effect.sleep(pollMillis)))
  )
})

export const start = startWith()
