import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { Idempotency } from "../ports/journal/Requests.js"
import type { Switched } from "../ports/KillSwitches.js"

/** The writing request that a fiber works for, as the engine's parts share it. */
export class CurrentRequest extends Context.Tag("castellan/CurrentRequest")<
  CurrentRequest,
  {
    /** JSON of the request: what `Journal.accept` keeps for a later life. */
    readonly body: string
    readonly idempotency: Idempotency | null
    /** It was accepted in an earlier life of its fiber, or of the process. */
    readonly resumed: boolean
    /** From acceptance on the work goes on without its caller, and ends in a stored answer. */
    readonly accepted: () => boolean
    /** What it works with that the operator may pause, before it is accepted; and where the request names that. */
    readonly relies: Array<{ readonly what: Switched; readonly path: string }>
    /** It is durable now. Its caller waits so many milliseconds for the outcome, from now on; said again, from then on. */
    readonly accept: (patienceMillis: number) => Effect.Effect<void>
    /** Transactions that the journal does not count to the request, and of which its caller shall hear when they take long. */
    readonly sent: (txHashes: ReadonlyArray<Bytes32>) => Effect.Effect<void>
    /** All elements have come to an end: what follows is the final answer, good or bad. */
    readonly conclude: Effect.Effect<void>
  }
>() {}
