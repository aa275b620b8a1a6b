import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { RemoteSubmission, RemoteSubmissionIntent } from "./RemoteSubmissions.js"
import type {
  Acceptance,
  AcceptanceResult,
  FailedElement,
  LeaseRequest,
  OpRecord,
  OpSettlement,
  RequestRecord
} from "./Requests.js"
import type {
  AllocationRequest,
  AllocationResult,
  Lane,
  LaneWork,
  SignedTransaction,
  TransactionRecord,
  TransactionSettlement
} from "./Transactions.js"

/** The store failed; nothing of the call is durable. */
export class JournalError extends Data.TaggedError("JournalError")<{ readonly message: string }> {}

/**
 * The requests that an event of the chain concerns, sorted: their state has changed, by this call or by an earlier one
 * that told the same (another process's perhaps).
 */
export type Affected = ReadonlyArray<string>

/**
 * The durable memory of every write. Each method is one transaction: when it returns, its effect survives the
 * process; when it fails, it has none.
 */
export class Journal extends Context.Tag("castellan/Journal")<
  Journal,
  {
    /** Leases free nonce keys, lowest first; null when fewer than `count` are free. */
    readonly lease: (request: LeaseRequest) => Effect.Effect<ReadonlyArray<bigint> | null, JournalError>
    /** Frees what the holder leased and no accepted op of it uses. */
    readonly release: (holder: string) => Effect.Effect<void, JournalError>
    /**
     * Accepts the work of a request: the request, its ops with the nonces they own, the money they may cost and
     * the deployments it will authorise. The leases of their keys then last until the ops are settled or abandoned.
     * The same request may be accepted again with more ops. An op replaces one of the same element that is `accepted` when
     * something was signed under its nonce, and has that nonce too; the old one is `abandoned` from then on. `body` and `idempotency` are those of the first time. An
     * element that is accepted anew counts as failed no more.
     *
     * Judged in the order of the results: idempotency, nonces, money, deployments; the first obstacle in the order of the
     * ops (the deployments) is the answer, and leaves nothing behind. Money: what the other requests' ops under way hold
     * of the wallet, at all EntryPoints of the chain together, and what this request's ops hold of it, is within what is
     * available. When nobody else holds any of it, it is accepted: the caller has judged that case.
     *
     * Fails when the request was accepted as another one (account, endpoint, chain), is final, has an op of the same
     * index that is neither abandoned nor replaced, names another lane in its parts, refuses an element that it accepts, or gives no
     * funds for one of its wallets, or when the request was declined. It may be accepted again in another lane: its EOA may be another one after a restart.
     */
    readonly accept: (acceptance: Acceptance) => Effect.Effect<AcceptanceResult, JournalError>
    /**
     * Decides about a request whose acceptance failed and may take effect all the same, now or later: waits for one that is
     * being written. The lane of the accepted request, or null: it was not accepted, and nothing is under its id from now
     * on. The idempotency key of a declined request stays free; nothing tells of it.
     */
    readonly decline: (requestId: string) => Effect.Effect<Lane | null, JournalError>
    /** Notes why elements of an accepted request will not be done. The latest word on an index counts. */
    readonly refuse: (
      requestId: string,
      failed: ReadonlyArray<FailedElement>
    ) => Effect.Effect<void, JournalError>
    /**
     * Stores the final answer (JSON) of an accepted request. The first one stays until the request is reopened. False, and
     * nothing is stored: an op of it is `accepted` or `sent`, or its direct transaction `signed`; it is not at its end.
     * What `unsettle`, `settle` or `revertInclusions` take back meanwhile makes it false, or reopens the request.
     */
    readonly finish: (requestId: string, outcome: string) => Effect.Effect<boolean, JournalError>
    /** An accepted request; null: unknown, or forgotten. */
    readonly request: (requestId: string) => Effect.Effect<RequestRecord | null, JournalError>
    /** The accepted request of an idempotency key; null: none. */
    readonly requestOf: (
      accountId: AccountId,
      endpoint: string,
      idempotencyKey: string
    ) => Effect.Effect<{ readonly requestId: string; readonly bodyHash: Bytes32 } | null, JournalError>
    /** Which of these requests have a final answer. */
    readonly finalAmong: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<string>, JournalError>
    /** Every lane that has work that is not at its end. */
    readonly work: Effect.Effect<ReadonlyArray<LaneWork>, JournalError>
    /**
     * Claims a lane for this instance of the journal, which keeps it until another one claims it: then every call here
     * that changes something of the lane (its transactions, ops and accepted requests) fails and has no effect. A lane
     * that nobody has claimed is claimed by the first such call. False, and nothing changes: one of the `independent`
     * processes has the lane.
     */
    readonly claim: (
      lane: Lane,
      by: { readonly process: string; readonly independent: ReadonlyArray<string> }
    ) => Effect.Effect<boolean, JournalError>
    /**
     * Deletes final requests that were accepted before that time (Unix milliseconds), none of whose ops is under way or at a
     * remote bundler, and none of whose transactions is signed or mined; with them their ops, the transactions that carry
     * nothing else, and authorisations whose deadline is before that time. Their ids stay: nothing is accepted under them.
     * Requests that were declined before that time leave nothing.
     * Of a nonce with several versions the hashes stay. It takes many small transactions, and may be called again.
     */
    readonly forget: (before: number) => Effect.Effect<void, JournalError>
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
    /**
     * Hands out the lane's next nonce: the lowest one from the chain's on for which nothing was ever signed. Nothing else
     * hands out nonces. The caller has one allocation of a lane at a time that is neither signed nor handed back:
     * another call takes it over, and unsigned nonces below the new one are forgotten.
     *
     * `insufficientFunds`: what the lane's signed transactions that are not mined may cost, and this one's cost, is
     * more than the balance; nothing is handed out. `otherRoute`: a transaction of the lane that is `signed`, from
     * `drainedTo` on, has another route (see `Route`); nothing is handed out until it is mined. It is judged before the
     * money. Fails when one of the ops is not `accepted`, is of another chain or authority, or of another EntryPoint than the first one, or when the
     * direct request was not accepted on this chain, is final, or has a signed transaction that is not `foreign`.
     */
    readonly allocate: (request: AllocationRequest) => Effect.Effect<AllocationResult, JournalError>
    /** The signer refused: the nonce goes to the lane's next work. Fails when it was signed or never handed out. */
    readonly unallocate: (lane: Lane, nonce: bigint) => Effect.Effect<void, JournalError>
    /**
     * Stores signed bytes of an allocated or signed nonce. From here on the transaction counts as perhaps sent, and so do
     * its ops. Fails when `replaces` is not so, and when the lane has had another owner since the nonce was allocated. A nonce may have several versions, of which each adds to what it may cost; once it is mined, or while it is nobody's, it takes none. The first
     * one fails also when one of the ops has no hash, was given up since the allocation, or is sent some other way by
     * now, when the direct request is final or has another signed transaction by now, and when a transaction of another
     * route was signed since the allocation.
     */
    readonly recordSigned: (transaction: SignedTransaction) => Effect.Effect<void, JournalError>
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
     * A mined transaction has reached settled depth: state `settled`. Its ops without an outcome did not land and never
     * will through it: they are `accepted` again. Fails when it is neither mined nor settled.
     */
    readonly finalise: (lane: Lane, nonce: bigint) => Effect.Effect<Affected, JournalError>
    /**
     * A mined transaction has vanished from the chain before it was settled: it is `signed` again, its ops `sent` (unless
     * abandoned), without outcomes, and its requests are not final any more. Fails when it is neither mined nor signed.
     */
    readonly unsettle: (lane: Lane, nonce: bigint) => Effect.Effect<Affected, JournalError>
    /**
     * Somebody else's transaction used the nonce, at settled depth: state `foreign`. Its ops are `accepted` again, and
     * its direct request may be given another nonce. Fails when it is neither signed nor foreign: what is recorded as
     * mined has vanished before.
     */
    readonly recordExternalUse: (lane: Lane, nonce: bigint) => Effect.Effect<Affected, JournalError>
    /**
     * Ops are handed to somebody else's bundler: `sent`, in no transaction of ours. They have hashes. Fails when one of
     * them is unknown, settled, or in a signed transaction; handed over again, nothing changes.
     */
    readonly submitRemotely: (handing: RemoteSubmissionIntent) => Effect.Effect<void, JournalError>
    /** What became of ops that were handed over, or that others landed. Ops that are not `accepted` or `sent` are ignored. */
    readonly recordInclusions: (
      authority: Address,
      chainId: bigint,
      ops: ReadonlyArray<OpSettlement>
    ) => Effect.Effect<Affected, JournalError>
    /**
     * Landings of ops that were handed over have vanished from the chain: the ops are `sent` again, without outcomes, and
     * their requests not final any more. Ignored once `finaliseLanded` was told of them.
     */
    readonly revertInclusions: (
      authority: Address,
      chainId: bigint,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<Affected, JournalError>
    /** Landings of ops that were handed over have reached settled depth: they need to be watched no more. */
    readonly finaliseInclusions: (
      authority: Address,
      chainId: bigint,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<void, JournalError>
    /** Ops that were handed over can land no more: they are `accepted` again. Ops in a transaction of ours are ignored. */
    readonly revokeRemote: (
      requestId: string,
      indexes: ReadonlyArray<number>
    ) => Effect.Effect<void, JournalError>
    /** Every op that was handed over and is neither taken back nor landed for good, in the order of acceptance. */
    readonly remoteSubmissions: Effect.Effect<ReadonlyArray<RemoteSubmission>, JournalError>
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
    /** An op by its hash, when it belongs to this account; the latest one, and one given up only when no other is left. */
    readonly findOp: (
      accountId: AccountId,
      chainId: bigint,
      userOpHash: Bytes32
    ) => Effect.Effect<OpRecord | null, JournalError>
  }
>() {}
