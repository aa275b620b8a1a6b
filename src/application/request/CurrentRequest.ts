import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { Acceptance, AcceptanceResult } from "../ports/journal/Records.js"
import type { Idempotency, Schedule } from "../ports/journal/Requests.js"
import type { Switched } from "../ports/KillSwitches.js"
import type { Failure } from "./Failure.js"

/**
 * The answer is that of an accepted request on which something else works: another request that has the idempotency
 * key, or this one, whose lane is another process's. `isScheduled`: this one, on which nothing works until it is due.
 */
export class AnsweredElsewhere extends Data.TaggedError("AnsweredElsewhere")<{
  readonly requestId: string
  readonly isScheduled?: true
}> {}

/** What does the work has nothing to do with how it is counted, and what its caller says of it. */
export type AcceptedWork = Omit<Acceptance, "elements" | "metadata">

/** The writing request that a fiber works for, as the engine's parts share it. */
export class CurrentRequest extends Context.Service<
  CurrentRequest,
  {
    /** JSON of the request: what `RequestJournal.accept` keeps for a later life. */
    readonly body: string
    readonly idempotency: Idempotency | null
    /** It was accepted by an earlier fiber of it, or before the process started. */
    readonly resumed: boolean
    /** From acceptance on the work goes on without its caller, and ends in a stored answer. */
    readonly accepted: () => boolean
    /** What it works with that the operator may pause, before it is accepted; and where the request names that. */
    readonly relies: Array<{ readonly what: Switched; readonly path: string }>
    /**
     * Accepts work of the request in the journal, with its metadata, see `RequestJournal.accept`. Once it is durable the caller waits so many
     * milliseconds for the outcome. Fails when it was accepted and its lane is another process's, which goes on with it,
     * and when another request has the idempotency key.
     */
    readonly accept: (
      acceptance: AcceptedWork,
      patienceMillis: number
    ) => Effect.Effect<Exclude<AcceptanceResult, { readonly _tag: "known" }>, AnsweredElsewhere>
    /**
     * Ends the work until it is due. A request that is not accepted yet is accepted with what the acceptance says; else only
     * its schedule is stored. Of those that are not accepted yet no more wait than the operator allows.
     */
    readonly schedule: (
      acceptance: AcceptedWork,
      schedule: Schedule
    ) => Effect.Effect<never, AnsweredElsewhere | Failure>
    /** The caller waits so many milliseconds from now on. */
    readonly extend: (patienceMillis: number) => Effect.Effect<void>
    /** The outcome is far off: the caller waits no longer, and is told what is known. */
    readonly dismiss: Effect.Effect<void>
    /** Transactions that the journal does not count to the request, and of which its caller shall hear when they take long. */
    readonly sent: (txHashes: ReadonlyArray<Bytes32>) => Effect.Effect<void>
    /**
     * Once it is accepted it asks nodes in its turn, see `Turns`: `work` waits for that, and has it until `rest`, which comes
     * before all that may take long for another reason.
     */
    readonly work: Effect.Effect<void>
    readonly rest: Effect.Effect<void>
    /** All elements have come to an end: what follows is the final answer, good or bad. */
    readonly conclude: Effect.Effect<void>
  }
>()("castellan/CurrentRequest") {}
