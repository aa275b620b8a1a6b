import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Lane } from "./journal/Transactions.js"

/** A hint from one process to the others, which saves them the wait for their next journal poll. */
export type Signal =
  /** The process accepted a request for another process's lane. `hasUnopened`: some of its elements are unopened. */
  | { readonly _tag: "accepted"; readonly lane: Lane; readonly hasUnopened?: boolean | undefined }
  /** The request has its final answer. */
  | { readonly _tag: "final"; readonly requestId: string }

/** The processes that share a journal: lane assignment and signals. */
export class Replicas extends Context.Service<
  Replicas,
  {
    /** Name of this process in the journal, unique among processes and restarts. */
    readonly process: string
    /**
     * Whether the lane is assigned to this process. Two processes may believe so for a moment; the journal's claims
     * decide, see `LaneJournal.claim`.
     */
    readonly owns: (lane: Lane) => boolean
    /** Emits whenever this process is assigned new lanes. */
    readonly assigned: Stream.Stream<void>
    /** Live processes of the same journal that assign lanes independently of this one: other services. */
    readonly independent: Effect.Effect<ReadonlyArray<string>>
    /** Returns immediately. Signals may be lost: their facts are in the journal, which every process polls. */
    readonly tell: (signal: Signal) => Effect.Effect<void>
    /** Signals from other processes, from now on; may include this process's own. */
    readonly signals: Stream.Stream<Signal>
  }
>()("castellan/Replicas") {}
