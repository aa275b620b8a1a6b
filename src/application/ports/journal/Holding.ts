import * as FiberRef from "effect/FiberRef"
import type { Lane } from "./Transactions.js"

/** One stretch of time in which an instance of the journal had a lane: the epoch of its claim names it. */
export interface Holding extends Lane {
  readonly epoch: number
}

/**
 * The holding under which the work of this fiber began; null: it is not known. Another process may have had the lane since
 * and given up what this fiber has in mind, though the lane has come back: what changes something of the lane then fails as if
 * it had not. A fiber that this one starts may live longer than its work, and begins without one.
 */
export const begun: FiberRef.FiberRef<Holding | null> = FiberRef.unsafeMake<Holding | null>(null, {
  fork: () => null,
  join: (own) => own
})
