import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"

/** How long accepted work lives, and what wakes it again. */
export interface Lifetime {
  /** Lives as long as the process: accepted work runs there, whether its caller still waits or not. */
  readonly scope: Scope.Scope
  /** Something in the journal is to go on: the next round does not wait for its time. */
  readonly nudges: Queue.Queue<void>
  /** Tells everybody who waits for a sent transaction what is known of it, and to look again later. */
  readonly stopWaiting: Effect.Effect<void>
}

export const Lifetime: Context.Key<Lifetime, Lifetime> = Context.Service("castellan/Lifetime")
