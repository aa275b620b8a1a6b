import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { JournalError } from "./JournalError.js"
import type { BusyLane } from "./Records.js"
import type { Lane } from "./Transactions.js"

/** Lanes: which have work, and which process has them. See `Journals`. */
export class LaneJournal extends Context.Service<
  LaneJournal,
  {
    /** Every lane with work: open requests that are due or wait for a time, unsettled transactions, watched ops. */
    readonly busy: Effect.Effect<ReadonlyArray<BusyLane>, JournalError>
    /**
     * Claims a lane for this instance of the journal, until another instance claims it. From then on this instance's
     * changes to the lane (its transactions, ops and accepted requests) fail without effect. The first such change
     * claims an unclaimed lane. Returns the epoch of the claim, see `Holding`. Null, and no change: one of the
     * `independent` processes has the lane. A claim for the process "" releases the lane.
     */
    readonly claim: (
      lane: Lane,
      by: { readonly process: string; readonly independent: ReadonlyArray<string> }
    ) => Effect.Effect<number | null, JournalError>
  }
>()("castellan/LaneJournal") {}
