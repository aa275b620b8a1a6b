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

/** The transactions of the lanes: their nonces, signed bytes, and what became of them and of their ops. See `Journals`. */
export class TransactionJournal extends Context.Service<
  TransactionJournal,
  {
    /**
     * The lowest nonce from the chain's on for which nothing was ever signed. `isGap`: the journal does not know what the one
     * before the chain's was used for.
     */
    readonly nextNonce: (
      lane: Lane,
      chainNonce: bigint
    ) => Effect.Effect<{ readonly nonce: bigint; readonly isGap: boolean }, JournalError>
    /**
     * Hands out the nonce and stores the bytes that were signed for it, in one transaction. From here on the transaction counts
     * as perhaps sent: its ops are sent and exposed. Nothing else gives work a nonce. Fails when the ops are of another lane or
     * of several EntryPoints.
     */
    readonly record: (recording: Recording) => Effect.Effect<RecordResult, JournalError>
    /**
     * Stores bytes that replace others of the nonce: each version may be the one that is mined. The same bytes again change
     * nothing. False, and nothing is stored: the nonce is not `signed` any more.
     */
    readonly replace: (replacement: Replacement) => Effect.Effect<boolean, JournalError>
    /**
     * A node took these versions: `submitted` is told of those of their nonces that are `signed` and of which it was not
     * told. Of the others it is told with what is recorded of them on the chain.
     */
    readonly recordSubmitted: (
      lane: Lane,
      transactions: ReadonlyArray<{ readonly nonce: bigint; readonly txHash: Bytes32 }>
    ) => Effect.Effect<void, JournalError>
    /**
     * Records the mined transaction of a nonce (state `mined`) and the outcomes of its ops that have one; those ops free
     * what they held. Only a version that was stored can be mined. `final`: it is at settled depth already, see `finalise`.
     * The same call again changes nothing; it may add outcomes as long as the transaction is not settled. When it was
     * recorded as mined in another block, or another version was, that is taken back first, see `unsettle`. What is
     * settled stays as it is. Outcomes of ops that the transaction does not carry are ignored.
     */
    readonly settle: (
      transaction: TransactionSettlement,
      ops: ReadonlyArray<OpSettlement>,
      final: boolean
    ) => Effect.Effect<Affected, JournalError>
    /**
     * A mined transaction has reached settled depth (so many confirmations): state `settled`. Its ops without an outcome did not land and never
     * will through it: they are `accepted` again. Fails when it is neither mined nor settled.
     */
    readonly finalise: (
      lane: Lane,
      nonce: bigint,
      confirmations: number
    ) => Effect.Effect<Affected, JournalError>
    /**
     * A mined transaction has vanished from the chain before it was settled: it is `signed` again, its ops `sent` (unless
     * abandoned), without outcomes, and its requests are not final any more. Fails when it is neither mined nor signed.
     */
    readonly unsettle: (lane: Lane, nonce: bigint) => Effect.Effect<Affected, JournalError>
    /**
     * A transaction that is not castellan's used the nonce, at settled depth: state `external`. Those of its ops that landed all the
     * same, at settled depth too, have their outcomes from then on; the others are `accepted` again, and its direct
     * request may be given another nonce. Outcomes of ops that it does not carry are ignored. Fails when it is neither
     * signed nor external: what is recorded as mined has vanished before.
     */
    readonly recordExternalUse: (
      lane: Lane,
      nonce: bigint,
      ops: ReadonlyArray<OpSettlement>
    ) => Effect.Effect<Affected, JournalError>
    /**
     * A mined transaction of the lane's key, of which the journal did not know, is this accepted request's own: it is a version
     * of the nonce, `signed` until `settle` tells of it, as if it had been signed here. Fails when something else was signed
     * for the nonce, or for the request.
     */
    readonly adopt: (
      adopted: Lane & {
        readonly nonce: bigint
        readonly requestId: string
        readonly access: LaneAccess
        readonly transaction: Pick<TransactionVersion, "maxFeePerGas" | "maxPriorityFeePerGas" | "txHash">
      }
    ) => Effect.Effect<void, JournalError>
    /** Every transaction that is signed or mined and not settled, by lane and nonce. */
    readonly open: Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError>
    /** Those of one lane. */
    readonly openOf: (lane: Lane) => Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError>
    /** The transactions that were signed in the lane for a nonce from `from` on and below `below`, in nonce order, in any state. */
    readonly transactionsBetween: (
      lane: Lane,
      from: bigint,
      below: bigint
    ) => Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError>
    /** The transaction of the account (its access's) that has this hash among its versions; null: none. */
    readonly findTransaction: (
      accountId: AccountId,
      chainId: bigint,
      txHash: Bytes32
    ) => Effect.Effect<TransactionRecord | null, JournalError>
    /** The transaction of the lane, whichever account's, that has this hash among its versions; null: none. */
    readonly transactionOf: (
      lane: Lane,
      txHash: Bytes32
    ) => Effect.Effect<TransactionRecord | null, JournalError>
  }
>()("castellan/TransactionJournal") {}
