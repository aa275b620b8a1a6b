import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { JournalError } from "./JournalError.js"
import type { Lane } from "./Transactions.js"

/** An accepted request that is not final, due or not. */
export interface OpenRequest {
  readonly requestId: string
  /** Unix milliseconds. */
  readonly acceptedAt: number
}

/**
 * Repairs a journal that is older than the chain. A restored backup, or a standby that had not received everything,
 * misses transactions that were signed later. See `Journals`.
 */
export class RecoveryJournal extends Context.Service<
  RecoveryJournal,
  {
    /**
     * All nonces of the lane below this one are known: bytes were signed for them here, or they were read on the chain.
     * Null: the lane has neither. Signing above unread nonces makes none of them known.
     */
    readonly knownTo: (lane: Lane) => Effect.Effect<bigint | null, JournalError>
    /** Marks nonces from `knownTo` on as unread until `explain`, whatever is signed or adopted. */
    readonly keepUnread: (lane: Lane) => Effect.Effect<void, JournalError>
    /** All nonces of the lane below `below` were read on the chain, and the consequences are recorded. */
    readonly explain: (lane: Lane, below: bigint) => Effect.Effect<void, JournalError>
    /** Time of the last `OpJournal.publish` for the lane, Unix milliseconds; null: never. */
    readonly provenAt: (lane: Lane) => Effect.Effect<number | null, JournalError>
    /** The lane's open requests that are not held, in the order of acceptance. */
    readonly openIn: (lane: Lane) => Effect.Effect<ReadonlyArray<OpenRequest>, JournalError>
    /** The given hashes that belong to ops in this journal, of any request. */
    readonly known: (
      chainId: bigint,
      entryPoint: Address,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<ReadonlySet<Bytes32>, JournalError>
    /** Corrects the hashes of accepted ops of the request: they were signed under these hashes after all. */
    readonly identifyAnew: (
      lane: Lane,
      requestId: string,
      ops: ReadonlyArray<{ readonly index: number; readonly userOpHash: Bytes32 }>
    ) => Effect.Effect<void, JournalError>
    /**
     * Holds an open request until the operator decides: its lane ignores it meanwhile, and it does not expire. `why` is
     * shown to the operator. False, and no change: it is final, or was released.
     */
    readonly hold: (lane: Lane, requestId: string, why: string) => Effect.Effect<boolean, JournalError>
    /** Releases a held request permanently. False, and no change: it is not held. */
    readonly unhold: (requestId: string) => Effect.Effect<boolean, JournalError>
  }
>()("castellan/RecoveryJournal") {}
