import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Lane } from "./journal/Transactions.js"

/** What a process tells the others, so that they need not wait for their next look at the journal. */
export type Signal =
  /** It accepted a request of a lane that is another one's. `hasUnopened`: elements of it are to be opened. */
  | { readonly _tag: "accepted"; readonly lane: Lane; readonly hasUnopened?: boolean | undefined }
  /** The request has its final answer. */
  | { readonly _tag: "final"; readonly requestId: string }

/** The processes that share a journal: which of them works on which lanes, and what they tell each other. */
export class Replicas extends Context.Service<
  Replicas,
  {
    /** The name of this process in the journal: no other process, and no other life of this one, has it. */
    readonly process: string
    /**
     * Whether the lane is assigned to this process. Two processes may believe so for a moment: the journal's claims
     * decide, see `LaneJournal.claim`.
     */
    readonly owns: (lane: Lane) => boolean
    /** An element whenever this process has been assigned lanes that it did not have. */
    readonly assigned: Stream.Stream<void>
    /** Processes of the same journal that are alive and assign lanes without regard to this one: other services. */
    readonly independent: Effect.Effect<ReadonlyArray<string>>
    /** Returns at once. A signal may be lost: what it tells is in the journal, which everybody looks at now and then. */
    readonly tell: (signal: Signal) => Effect.Effect<void>
    /** What the others tell, from now on, and perhaps what this process told itself. */
    readonly heard: Stream.Stream<Signal>
  }
>()("castellan/Replicas") {}
