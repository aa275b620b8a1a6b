import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { JournalError } from "./JournalError.js"
import type { Op, OpId, OpVersion, PreparedOp, RenumberResult } from "./Records.js"
import type { FailedElement, LeaseRequest, OpRecord, RequestOps } from "./Requests.js"
import type { Lane } from "./Transactions.js"

/** Ops before they are in a transaction: their leased nonce keys, their hashes, and abandoned ops. See `Journals`. */
export class OpJournal extends Context.Service<
  OpJournal,
  {
    /**
     * Leases free nonce keys for the requests in order, lowest first, up to the first request for which fewer than its
     * `count` are free. That request and the ones behind it have no element in the result.
     */
    readonly lease: (
      requests: ReadonlyArray<LeaseRequest>
    ) => Effect.Effect<ReadonlyArray<ReadonlyArray<bigint>>, JournalError>
    /** Frees the keys that the holder leased and that none of its accepted ops uses. */
    readonly release: (holder: string) => Effect.Effect<void, JournalError>
    /**
     * The oldest ready ops of the lane whose requests are not held, in the order of acceptance. `after`: only ops
     * behind this one. `perAccount`: most ops of each account, so that no account waits behind another's backlog.
     */
    readonly ready: (
      lane: Lane,
      limit: number,
      which?: { readonly after?: OpId; readonly perAccount?: number }
    ) => Effect.Effect<ReadonlyArray<Op>, JournalError>
    /**
     * Exposed rows that these ops have replaced under the same nonce. If one lands, it is the element's outcome too.
     */
    readonly versions: (opIds: ReadonlyArray<OpId>) => Effect.Effect<ReadonlyArray<OpVersion>, JournalError>
    /**
     * Replaces ready ops that were prepared again under their nonces. An exposed op stays as an abandoned row, and its
     * new row is exposed too. Authorisations for creations then last as long as the ops' windows. Returns the rows' ids
     * in order; null: the element has no ready op of that nonce any more, and is unchanged.
     */
    readonly renew: (
      lane: Lane,
      prepared: ReadonlyArray<PreparedOp>
    ) => Effect.Effect<ReadonlyArray<OpId | null>, JournalError>
    /**
     * Replaces ready ops that were prepared again under new nonces. Exposed ops must be dead in all versions, as the
     * caller has verified; they stay as abandoned rows. All are replaced, or none: `nonceTaken`, another op owns that
     * nonce; `notReady`, the element has no ready op any more. Elements may take each other's nonces.
     */
    readonly renumber: (
      lane: Lane,
      prepared: ReadonlyArray<PreparedOp>
    ) => Effect.Effect<RenumberResult, JournalError>
    /**
     * Fails elements with the given reasons. Ready ops are abandoned, which frees nonces, keys and money; the caller
     * states that exposed ones are dead. For sent ops only the reason is stored, for landed elements nothing. Unopened
     * elements leave their count. Elements found `done`: ready ops are abandoned, no reason is stored.
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
     * The journal has lost transactions of the lane. Others may know bytes of these ready ops, whatever the journal
     * knows, so the ops keep their nonces. See `RecoveryJournal.provenAt`.
     */
    readonly publish: (lane: Lane, opIds: ReadonlyArray<OpId>) => Effect.Effect<void, JournalError>
    /** The ops of an accepted request, or of these elements only; empty when it is unknown or forgotten. */
    readonly ofRequest: (
      requestId: string,
      elements?: ReadonlyArray<number>
    ) => Effect.Effect<RequestOps, JournalError>
    /** The latest op with this hash, if it belongs to the account; an abandoned op only when no other is left. */
    readonly findOp: (
      accountId: AccountId,
      chainId: bigint,
      userOpHash: Bytes32
    ) => Effect.Effect<OpRecord | null, JournalError>
  }
>()("castellan/OpJournal") {}
