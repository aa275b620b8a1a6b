import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Lane } from "./Transactions.js"

/** One stretch of time in which an instance of the journal had a lane: the epoch of its claim names it. */
export interface Holding extends Lane {
  readonly epoch: number
}

/** Work that an attempt does: what it holds may be given to it, or change, while it goes on. */
export interface Begun {
  readonly holding: Holding | null
}

const nothing: Begun = { holding: null }

/**
 * The holding under which the present work began; null: it is not known. Another process may have had the lane since and given
 * up what this work has in mind, though the lane has come back: what changes something of the lane then fails as if it had not.
 */
export const begun: Context.Reference<Begun> = Context.Reference<Begun>("castellan/Holding", {
  defaultValue: () => nothing
})

/** Work that lives longer than the work that starts it begins without its holding. */
export const outliving = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, begun, nothing)
