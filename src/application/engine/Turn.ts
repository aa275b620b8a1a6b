import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Lane } from "../ports/Journal.js"
import type { Lanes } from "./Lanes.js"
import type { Watcher } from "./Watcher.js"

/**
 * Runs when fewer than `below` transactions of the lane are on their way, while no other work of the lane does. Nothing of
 * the lane is held while it waits: what is stuck can be priced anew.
 */
export const take = <A, E, R>(
  { lanes, watcher }: { readonly lanes: Lanes; readonly watcher: Watcher },
  lane: Lane,
  below: number,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  watcher.room(lane, below).pipe(
    Effect.zipRight(
      lanes.exclusive(
        lane,
        // Others may have had the room in the meantime.
        Effect.suspend(() =>
          watcher.inFlight(lane) < below ? Effect.asSome(effect) : Effect.succeed(Option.none<A>())
        )
      )
    ),
    Effect.flatMap(
      Option.match({
        onNone: () => take({ lanes, watcher }, lane, below, effect),
        onSome: Effect.succeed
      })
    )
  )
