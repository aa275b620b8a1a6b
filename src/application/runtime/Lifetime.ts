import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"

/** Lifetime of accepted work, and the signals that resume it. */
export interface Lifetime {
  /** Lives as long as the process: accepted work runs there, whether its caller still waits or not. */
  readonly scope: Scope.Scope
  /** Work in the journal is ready: the next round starts early. */
  readonly nudges: Queue.Queue<void>
  /** Answers all callers that wait for a sent transaction with its known state; they may check later. */
  readonly stopWaiting: Effect.Effect<void>
}

export const Lifetime: Context.Key<Lifetime, Lifetime> = Context.Service("castellan/Lifetime")
