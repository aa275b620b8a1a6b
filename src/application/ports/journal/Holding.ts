import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Lane } from "./Transactions.js"

/** One period in which an instance of the journal had a lane, named by the epoch of its claim. */
export interface Holding extends Lane {
  readonly epoch: number
}

/** Work of one attempt; its holding may be set or change while the work runs. */
export interface Begun {
  readonly holding: Holding | null
}

const nothing: Begun = { holding: null }

/**
 * The holding that the current work began with; null: unknown. Another process may have had the lane since and given up
 * this work's plans. The work's changes to the lane then fail, even though the lane has come back.
 */
export const begun: Context.Reference<Begun> = Context.Reference<Begun>("castellan/Holding", {
  defaultValue: () => nothing
})

/** Starts work that outlives its starter without the starter's holding. */
export const outlive = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, begun, nothing)
