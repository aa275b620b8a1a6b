import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { JournalError } from "./JournalError.js"
import type { BusyLane } from "./Records.js"
import type { Lane } from "./Transactions.js"

/** Lanes: which have work, and whose they are. See `Journals`. */
export class LaneJournal extends Context.Service<
  LaneJournal,
  {
    /**
     * Every lane that has something to do: requests that are open and due or wait for a time, transactions that are not settled,
     * ops that are watched.
     */
    readonly busy: Effect.Effect<ReadonlyArray<BusyLane>, JournalError>
    /**
     * Brings what earlier versions left in a lane that this process has claimed to the form of this one: nonces that were
     * handed out and not signed are nobody's, each open request of a direct transaction has its op, and unopened elements
     * are counted.
     */
    readonly takeOver: (lane: Lane) => Effect.Effect<void, JournalError>
    /**
     * Claims a lane for this instance of the journal, which keeps it until another one claims it: then every call here
     * that changes something of the lane (its transactions, ops and accepted requests) fails and has no effect. A lane
     * that nobody has claimed is claimed by the first such call. Gives the epoch of the claim, see `Holding`. Null, and
     * nothing changes: one of the `independent` processes has the lane. Claimed for the process "" it is nobody's: whoever
     * claims it next has it.
     */
    readonly claim: (
      lane: Lane,
      by: { readonly process: string; readonly independent: ReadonlyArray<string> }
    ) => Effect.Effect<number | null, JournalError>
  }
>()("castellan/LaneJournal") {}
