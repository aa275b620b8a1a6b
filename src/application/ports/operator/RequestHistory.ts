import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { AccountId } from "../Tenants.js"

export class RequestHistoryError extends Data.TaggedError("RequestHistoryError")<{
  readonly message: string
}> {}

/** `partly`: some of its elements succeeded. */
export type Result = "succeeded" | "partly" | "failed" | "cancelled" | "expired"

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
  /** What came of a final request, as its last event says; null: it is not final, or that is not known any more. */
  readonly result: Result | null
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
  /** Oldest instead of newest first; `before` then means entries above. */
  readonly isOldestFirst?: boolean
  /** Entries below this number only: the next page. */
  readonly before?: bigint | undefined
  /** At most 1,000. */
  readonly limit: number
}

/** Accepted work of a chain that has not ended and is due. */
export interface Waiting {
  readonly chainId: bigint
  readonly ops: number
  /** When the oldest of its requests was accepted, or became due, Unix milliseconds; null: nothing waits. */
  readonly oldestAt: number | null
}

/** Which requests the journal has accepted: for the operator, who reads and changes nothing. */
export class RequestHistory extends Context.Service<
  RequestHistory,
  {
    /** The newest first. */
    readonly find: (question: Question) => Effect.Effect<ReadonlyArray<Entry>, RequestHistoryError>
    /**
     * The newest requests that the text names: by id, by a wallet's address, by the hash of an op or a transaction, by the salt
     * of a wallet that it created, or by a value of its metadata among the newest 20,000. At most `limit`.
     */
    readonly search: (text: string, limit: number) => Effect.Effect<ReadonlyArray<Entry>, RequestHistoryError>
    /** By chain, the ops that wait for a transaction or its block, of requests that are due and not held. */
    readonly waiting: Effect.Effect<ReadonlyArray<Waiting>, RequestHistoryError>
  }
>()("castellan/RequestHistory") {}
