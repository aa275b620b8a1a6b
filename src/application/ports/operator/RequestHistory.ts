import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../../domain/primitives/Address.js"
import type { AccountId } from "../Tenants.js"

export class RequestHistoryError extends Data.TaggedError("RequestHistoryError")<{
  readonly message: string
}> {}

/** `partly`: only some of its elements succeeded. */
export type Result = "succeeded" | "partly" | "failed" | "cancelled" | "expired"

/** `code` is that of the answer, or of an element that failed; `message` is the element's error. */
export interface Reason {
  readonly code: string
  readonly message: string | null
}

/** An accepted request, without its body. */
export interface Entry {
  /** Ascending, in the order of acceptance. */
  readonly number: bigint
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly chainId: bigint
  /** `held`: it waits for the operator; `forgotten`: final, with its answer deleted. */
  readonly state: "pending" | "held" | "final" | "forgotten"
  /** Result of a final request, by its last event; null: not final, or no longer known. */
  readonly result: Result | null
  /** The first reason of a result other than `succeeded`, as far as its event has one. */
  readonly failure: Reason | null
  readonly elements: number
  /** Unix milliseconds. */
  readonly acceptedAt: number
}

/** Search criteria. An absent field matches any value. */
export interface Question {
  readonly accountId?: AccountId | undefined
  readonly chainId?: bigint | undefined
  readonly endpoint?: string | undefined
  /** `pending` includes held requests. */
  readonly state?: Entry["state"] | undefined
  /** Oldest instead of newest first; `before` then means entries above. */
  readonly isOldestFirst?: boolean
  /** Only entries below this number: the next page. */
  readonly before?: bigint | undefined
  /** At most 1,000. */
  readonly limit: number
}

/** A chain's accepted, unfinished work that is due. */
export interface Waiting {
  readonly chainId: bigint
  readonly ops: number
  /** When its oldest request was accepted, or became due, Unix milliseconds; null: no work waits. */
  readonly oldestAt: number | null
}

/** The requests that the journal has accepted, read-only, for the operator. */
export class RequestHistory extends Context.Service<
  RequestHistory,
  {
    /** Newest first: by number, of one account by time. */
    readonly find: (question: Question) => Effect.Effect<ReadonlyArray<Entry>, RequestHistoryError>
    /**
     * The newest requests that match the text, at most `limit`: by id, wallet address, hash of an op or transaction,
     * salt of a created wallet, or a metadata value among the newest 20,000 requests; and those of the given wallets.
     */
    readonly search: (
      text: string,
      limit: number,
      wallets?: ReadonlyArray<Address>
    ) => Effect.Effect<ReadonlyArray<Entry>, RequestHistoryError>
    /** By chain, the ops that wait for a transaction or its block, of requests that are due and not held. */
    readonly waiting: Effect.Effect<ReadonlyArray<Waiting>, RequestHistoryError>
  }
>()("castellan/RequestHistory") {}
