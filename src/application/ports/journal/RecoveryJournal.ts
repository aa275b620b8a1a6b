import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { JournalError } from "./JournalError.js"
import type { Lane } from "./Transactions.js"

/** An accepted request that is not final, whenever it is due. */
export interface OpenRequest {
  readonly requestId: string
  /** Unix milliseconds. */
  readonly acceptedAt: number
}

/**
 * What a journal that is older than the chain has to be told: a backup that was restored, or a standby that had not received
 * everything, does not know of transactions that were signed after it was taken. See `Journals`.
 */
export class RecoveryJournal extends Context.Service<
  RecoveryJournal,
  {
    /**
     * All nonces of the lane below this one are known: something was signed for them here, or they were read on the chain.
     * Null: the lane has neither. What is signed above nonces that are to be read makes none of them known.
     */
    readonly knownTo: (lane: Lane) => Effect.Effect<bigint | null, JournalError>
    /** Nonces of the lane from `knownTo` on are to be read: they stay unknown until `explain`, whatever is signed or adopted. */
    readonly keepUnread: (lane: Lane) => Effect.Effect<void, JournalError>
    /** All nonces of the lane below this one were read on the chain, and what follows from them is recorded. */
    readonly explain: (lane: Lane, below: bigint) => Effect.Effect<void, JournalError>
    /** When `OpJournal.publish` was told last that the journal has lost transactions of the lane, Unix milliseconds; null: never. */
    readonly provenAt: (lane: Lane) => Effect.Effect<number | null, JournalError>
    /** The lane's open requests that are not held, in the order of acceptance. */
    readonly openIn: (lane: Lane) => Effect.Effect<ReadonlyArray<OpenRequest>, JournalError>
    /** Those of the hashes that are of ops here, of whichever request. */
    readonly known: (
      chainId: bigint,
      entryPoint: Address,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<ReadonlySet<Bytes32>, JournalError>
    /** Accepted ops of the request were signed under these hashes after all: they have them from now on. */
    readonly identifyAnew: (
      lane: Lane,
      requestId: string,
      ops: ReadonlyArray<{ readonly index: number; readonly userOpHash: Bytes32 }>
    ) => Effect.Effect<void, JournalError>
    /**
     * Holds an open request until the operator decides: it is no work of its lane meanwhile, and does not expire. `why` is
     * told to the operator. False, and nothing changes: it is final, or was released.
     */
    readonly hold: (lane: Lane, requestId: string, why: string) => Effect.Effect<boolean, JournalError>
    /** Lets a held request go on, for good. False, and nothing changes: it is not held. */
    readonly unhold: (requestId: string) => Effect.Effect<boolean, JournalError>
  }
>()("castellan/RecoveryJournal") {}
