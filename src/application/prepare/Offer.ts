import type { Hex } from "../../domain/primitives/Hex.js"
import type { Caller } from "../request/Caller.js"
import type { Call } from "./Call.js"
import type { OfRequest } from "./OpContext.js"

/** A request whose calls are to be accepted: all that it can be wrong about by itself is judged. */
export interface Offer<C extends Call = Call> {
  readonly requestId: string
  readonly caller: Caller
  readonly endpoint: string
  readonly context: OfRequest
  /** Of one kind. */
  readonly calls: ReadonlyArray<C>
  /** JSON of the request, from which its calls are made again. */
  readonly body: string
  /** What an op of it reverted with, readable. */
  readonly revert: (data: Hex) => string
  /** What is too early waits for its window, instead of failing. */
  readonly mayWait: boolean
}
