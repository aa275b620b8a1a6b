import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { AccountId } from "./Tenants.js"

export class RequestHistoryError extends Data.TaggedError("RequestHistoryError")<{
  readonly message: string
}> {}

/** An accepted request, without what it asked for. */
export interface Entry {
  /** Ascending, in the order of acceptance. */
  readonly number: bigint
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly chainId: bigint
  /** `held`: it waits for the operator; `forgotten`: final, and its answer is not kept any more. */
  readonly state: "pending" | "held" | "final" | "forgotten"
  /** Unix milliseconds. */
  readonly acceptedAt: number
}

/** What to look for. Absent: whatever it is. */
export interface Question {
  readonly accountId?: AccountId | undefined
  readonly chainId?: bigint | undefined
  readonly endpoint?: string | undefined
  /** `pending`: what is held, too. */
  readonly state?: Entry["state"] | undefined
  /** Entries below this number only: the next page. */
  readonly before?: bigint | undefined
  /** At most 1,000. */
  readonly limit: number
}

/** Which requests the journal has accepted: for the operator, who reads and changes nothing. */
export class RequestHistory extends Context.Service<
  RequestHistory,
  {
    /** The newest first. */
    readonly find: (question: Question) => Effect.Effect<ReadonlyArray<Entry>, RequestHistoryError>
  }
>()("castellan/RequestHistory") {}
