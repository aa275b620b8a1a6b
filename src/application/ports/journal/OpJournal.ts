import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { JournalError } from "./JournalError.js"
import type { LeaseRequest, OpRecord, RequestOps } from "./Requests.js"

/** Ops before they are in a transaction: the nonce keys they are leased, their hashes, and the ones given up. See `Journals`. */
export class OpJournal extends Context.Service<
  OpJournal,
  {
    /**
     * Leases free nonce keys for each of the requests in this order, lowest first, up to the first request for which fewer
     * than its `count` are free: that one and those behind it have no element in the result.
     */
    readonly lease: (
      requests: ReadonlyArray<LeaseRequest>
    ) => Effect.Effect<ReadonlyArray<ReadonlyArray<bigint>>, JournalError>
    /** Frees what the holder leased and no accepted op of it uses. */
    readonly release: (holder: string) => Effect.Effect<void, JournalError>
    /**
     * Notes the hashes of accepted ops that had none yet, before they are signed. The same hash again changes
     * nothing; another one, or an op that is not accepted, fails.
     */
    readonly identify: (
      requestId: string,
      ops: ReadonlyArray<{ readonly index: number; readonly userOpHash: Bytes32 }>
    ) => Effect.Effect<void, JournalError>
    /**
     * Gives up ops of a request, by their index, that are in state `accepted`: frees their nonces, keys and money. The
     * same request may then accept work of the same index anew. Fails, and gives up none, when one of them is sent or
     * settled; unknown indexes are ignored.
     */
    readonly abandon: (requestId: string, indexes: ReadonlyArray<number>) => Effect.Effect<void, JournalError>
    /**
     * The same for those of the ops under whose nonces no op of their elements was ever in a signed transaction. The others
     * stay `accepted` and keep nonce, key and money: what was signed is public, and may land until its nonce is used.
     */
    readonly abandonUnsigned: (
      requestId: string,
      indexes: ReadonlyArray<number>
    ) => Effect.Effect<void, JournalError>
    /** The ops of an accepted request, or of those of its elements alone; empty where it is unknown, or forgotten. */
    readonly ofRequest: (
      requestId: string,
      elements?: ReadonlyArray<number>
    ) => Effect.Effect<RequestOps, JournalError>
    /** An op by its hash, when it belongs to this account; the latest one, and one given up only when no other is left. */
    readonly findOp: (
      accountId: AccountId,
      chainId: bigint,
      userOpHash: Bytes32
    ) => Effect.Effect<OpRecord | null, JournalError>
  }
>()("castellan/OpJournal") {}
