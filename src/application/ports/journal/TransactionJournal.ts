import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { JournalError } from "./JournalError.js"
import type { Recording, RecordResult, Replacement } from "./Records.js"
import type { Affected, OpSettlement } from "./Requests.js"
import type {
  Lane,
  LaneAccess,
  TransactionRecord,
  TransactionSettlement,
  TransactionVersion
} from "./Transactions.js"

/** The lanes' transactions: their nonces, signed bytes, and outcomes, with their ops' outcomes. See `Journals`. */
export class TransactionJournal extends Context.Service<
  TransactionJournal,
  {
    /**
     * The lowest nonce from `chainNonce` on that was never signed for. `isGap`: the journal does not know the
     * transaction of the nonce before `chainNonce`.
     */
    readonly nextNonce: (
      lane: Lane,
      chainNonce: bigint
    ) => Effect.Effect<{ readonly nonce: bigint; readonly isGap: boolean }, JournalError>
    /**
     * Assigns the nonce and stores the bytes signed for it, in one transaction. From here on the transaction may have
     * been sent: its ops are sent and exposed. No other method gives work a nonce. Fails when the ops are of another
     * lane or of several EntryPoints.
     */
    readonly record: (recording: Recording) => Effect.Effect<RecordResult, JournalError>
    /**
     * Stores bytes that replace others of the nonce; each version may be mined. Repeating the same bytes changes
     * nothing. False, and nothing is stored: the nonce is not `signed` any more.
     */
    readonly replace: (replacement: Replacement) => Effect.Effect<boolean, JournalError>
    /**
     * A node took these versions. Writes `submitted` for those whose nonces are `signed` and that have none yet. For
     * the others, the recorded inclusion writes it.
     */
    readonly recordSubmitted: (
      lane: Lane,
      transactions: ReadonlyArray<{ readonly nonce: bigint; readonly txHash: Bytes32 }>
    ) => Effect.Effect<void, JournalError>
    /**
     * Records the mined transaction of a nonce (state `mined`) and its ops' known outcomes; those ops free the money
     * they held. Only a stored version can be mined. `final`: it is at settled depth already, see `finalise`. Repeating
     * the call changes nothing, and may add outcomes until the transaction is settled. If another block or version was
     * recorded as mined, that is undone first, see `unsettle`. Settled state never changes. Outcomes of ops that it
     * does not carry are ignored.
     */
    readonly settle: (
      transaction: TransactionSettlement,
      ops: ReadonlyArray<OpSettlement>,
      final: boolean
    ) => Effect.Effect<Affected, JournalError>
    /**
     * A mined transaction has reached settled depth, with that many confirmations: state `settled`. Its ops without an
     * outcome never will land through it: they are `accepted` again. Fails when it is neither mined nor settled.
     */
    readonly finalise: (
      lane: Lane,
      nonce: bigint,
      confirmations: number
    ) => Effect.Effect<Affected, JournalError>
    /**
     * A mined transaction vanished from the chain before it was settled. It is `signed` again, its ops are `sent`
     * (unless abandoned) without outcomes, and its requests not final. Fails when it is neither mined nor signed.
     */
    readonly unsettle: (lane: Lane, nonce: bigint) => Effect.Effect<Affected, JournalError>
    /**
     * A foreign transaction used the nonce, at settled depth: state `external`. Ops that landed anyway, at settled
     * depth too, get their outcomes. The others are `accepted` again, and the direct request may get another nonce.
     * Outcomes of ops that the nonce does not carry are ignored. Fails when the nonce is neither signed nor external: a
     * mined transaction must be unsettled first.
     */
    readonly recordExternalUse: (
      lane: Lane,
      nonce: bigint,
      ops: ReadonlyArray<OpSettlement>
    ) => Effect.Effect<Affected, JournalError>
    /**
     * A mined transaction of the lane's key that the journal did not know belongs to this accepted request. It becomes
     * a version of the nonce, `signed` until `settle`, as if it had been signed here. Fails when other bytes were
     * signed for the nonce, or for the request.
     */
    readonly adopt: (
      adopted: Lane & {
        readonly nonce: bigint
        readonly requestId: string
        readonly access: LaneAccess
        readonly transaction: Pick<TransactionVersion, "maxFeePerGas" | "maxPriorityFeePerGas" | "txHash">
      }
    ) => Effect.Effect<void, JournalError>
    /** Every signed or mined transaction that is not settled, by lane and nonce. */
    readonly open: Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError>
    /** `open` for one lane. */
    readonly openOf: (lane: Lane) => Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError>
    /** The lane's transactions with a nonce from `from` up to, excluding, `below`, in nonce order, in any state. */
    readonly transactionsBetween: (
      lane: Lane,
      from: bigint,
      below: bigint
    ) => Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError>
    /** The account's transaction (by its access) that has this hash among its versions; null: none. */
    readonly findTransaction: (
      accountId: AccountId,
      chainId: bigint,
      txHash: Bytes32
    ) => Effect.Effect<TransactionRecord | null, JournalError>
    /** The lane's transaction, of any account, that has this hash among its versions; null: none. */
    readonly transactionOf: (
      lane: Lane,
      txHash: Bytes32
    ) => Effect.Effect<TransactionRecord | null, JournalError>
  }
>()("castellan/TransactionJournal") {}
