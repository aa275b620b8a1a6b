import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Lane } from "./journal/Transactions.js"

/** Which of the processes that share a journal works on which lanes. */
export class LaneOwnership extends Context.Tag("castellan/LaneOwnership")<
  LaneOwnership,
  {
    /** The name of this process in the journal: no other process, and no other life of this one, has it. */
    readonly process: string
    /**
     * Whether the lane is assigned to this process. Two processes may believe so for a moment: the journal's claims
     * decide, see `LaneJournal.claim`.
     */
    readonly owns: (lane: Lane) => boolean
    /** Processes of the same journal that are alive and assign lanes without regard to this one: other services. */
    readonly independent: Effect.Effect<ReadonlyArray<string>>
  }
>() {}
