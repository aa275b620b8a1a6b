import type * as Effect from "effect/Effect"
import type { Hex } from "../../domain/primitives/Hex.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import type { Caller } from "../request/Caller.js"
import type { Call } from "./Call.js"
import type { OfRequest } from "./OpContext.js"

/** A request to accept, already checked for every error that it can have by itself. */
export interface Offer<C extends Call = Call> {
  readonly requestId: string
  readonly caller: Caller
  readonly endpoint: string
  readonly context: OfRequest
  readonly calls: ReadonlyArray<C>
  /** JSON of the request; its calls can be rebuilt from it. */
  readonly body: string
  /** Decodes revert data of its ops for readers. */
  readonly revert: (data: Hex) => string
  /** A call whose window has not begun waits instead of failing. */
  readonly mayWait: boolean
  /** Previews of prepared and waiting calls, as JSON for the journal. Absent: the request asks for none. */
  readonly preview?:
    | ((prepared: {
        readonly ops: ReadonlyArray<PreparedOp>
        readonly waiting: ReadonlyMap<number, number>
      }) => Effect.Effect<string | null, never, ChainFacts>)
    | undefined
}
