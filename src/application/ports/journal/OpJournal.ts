import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { JournalError } from "./JournalError.js"
import type { Op, OpId, OpVersion, PreparedOp, RenumberResult } from "./Records.js"
import type { FailedElement, LeaseRequest, OpRecord, RequestOps } from "./Requests.js"
import type { Lane } from "./Transactions.js"

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
     * The oldest ready ops of the lane whose requests are not held, in the order of acceptance. `after`: only those behind that
     * one. `perAccount`: of each account so many at most, so that none waits behind another one's backlog.
     */
    readonly ready: (
      lane: Lane,
      limit: number,
      which?: { readonly after?: OpId; readonly perAccount?: number }
    ) => Effect.Effect<ReadonlyArray<Op>, JournalError>
    /**
     * Rows that the ops of these ids have replaced under the same nonce and that are exposed: whatever of them lands is the
     * element's outcome too.
     */
    readonly versions: (opIds: ReadonlyArray<OpId>) => Effect.Effect<ReadonlyArray<OpVersion>, JournalError>
    /**
     * Ready ops that were prepared again under their nonces. An exposed one stays as an abandoned row, and the element has
     * a new one, exposed too. What was authorised for creations lasts as long as their windows from then on. Gives the ids of the rows in the order of the list; null: the element has no ready op of that
     * nonce any more, and nothing changes of it.
     */
    readonly renew: (
      lane: Lane,
      prepared: ReadonlyArray<PreparedOp>
    ) => Effect.Effect<ReadonlyArray<OpId | null>, JournalError>
    /**
     * Ready ops that were prepared again under new nonces: unexposed ones, and exposed ones of which all versions are dead (the
     * caller has made sure), which stay as abandoned rows. All of them, or none: `nonceTaken`, another op owns that nonce;
     * `notReady`, the element has no ready op any more. Elements may take over the nonces of each other.
     */
    readonly renumber: (
      lane: Lane,
      prepared: ReadonlyArray<PreparedOp>
    ) => Effect.Effect<RenumberResult, JournalError>
    /**
     * These elements have come to nothing, for the reasons that are given. Ready ops of theirs are abandoned: nonces, keys and
     * money are free; exposed ones too, which the caller says are dead. Of ops that are sent the reason is noted alone, and
     * of elements that have landed nothing. Unopened ones are counted no more. Of elements that were found `done` the ready ops
     * are abandoned alone.
     */
    readonly fail: (
      lane: Lane,
      failures: ReadonlyArray<{
        readonly requestId: string
        readonly failed: ReadonlyArray<FailedElement>
        readonly done?: ReadonlyArray<number>
      }>
    ) => Effect.Effect<void, JournalError>
    /**
     * The journal has lost transactions of the lane: bytes of these ready ops may be known to others, whatever it knows, and they
     * keep their nonces. See `RecoveryJournal.provenAt`.
     */
    readonly publish: (lane: Lane, opIds: ReadonlyArray<OpId>) => Effect.Effect<void, JournalError>
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
