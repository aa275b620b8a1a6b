import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/evm/Address.js"
import type { Bytes32, Hex } from "../../domain/evm/Hex.js"
import type { AccountId } from "./Accounts.js"
import type { SignerRef } from "./Signers.js"

/** The store failed; nothing of the call is durable. */
export class JournalError extends Data.TaggedError("JournalError")<{ readonly message: string }> {}

/** The ordered stream of transactions of one EOA on one chain. */
export interface Lane {
  readonly chainId: bigint
  readonly signer: Address
}

/** How a lane's work goes on when nobody waits for it any more, in another process perhaps. */
export interface LaneAccess {
  readonly accountId: AccountId
  /** The lane's key: one of the account's, or the service's own EOA. */
  readonly key: SignerRef | "serviceEoa"
  /** The node, and who named it. Sealed at rest: keys sit in paths. */
  readonly rpc: Redacted.Redacted<string>
  readonly trust: "caller" | "operator"
}

/**
 * Where the nonces of a wallet's ops live.
 *
 * `authority` is the submitting EOA, a key of the caller's own. What is known of a wallet comes from the caller's node,
 * which may lie: leases, nonces, money and outcomes are kept apart by authority, so that nobody's node decides
 * about the wallets of somebody else's key.
 */
export interface NonceSpace {
  readonly authority: Address
  readonly chainId: bigint
  readonly entryPoint: Address
  readonly wallet: Address
}

export interface LeaseRequest extends NonceSpace {
  /** The request that will use the keys. */
  readonly holder: string
  /** Inclusive range of nonce keys to choose from, lowest free first. */
  readonly keys: { readonly from: bigint; readonly to: bigint }
  readonly count: number
  /** Milliseconds after which an unused lease is free again, so that a crash strands nothing. */
  readonly ttlMillis: number
}

/** One op as it is accepted. */
export interface OpIntent {
  /** Index of the request's element that it carries. */
  readonly index: number
  readonly space: NonceSpace
  readonly nonceKey: bigint
  readonly sequence: bigint
  /** Null while it depends on a signature that may only be made after acceptance (a deployment's); see `identify`. */
  readonly userOpHash: Bytes32 | null
  /** Wei that the wallet may have to pay for it at most: prefund and value. */
  readonly reserve: bigint
  /** What its call returned in the simulation; null: nothing worth keeping. */
  readonly returned: Hex | null
}

export interface DeploymentIntent {
  readonly chainId: bigint
  readonly factory: Address
  readonly create2Salt: Bytes32
  readonly configHash: Bytes32
  /** Unix seconds until which the authorisation that will be signed is valid. */
  readonly deadline: number
  /** Timestamp of the chain's latest block: an authorisation is alive until the chain has passed its deadline. */
  readonly chainTime: number
}

/** Why an element of a request will not be done. */
export interface FailedElement {
  readonly index: number
  readonly code: string
  readonly message: string
  readonly figures: Readonly<Record<string, string>>
}

/** What makes two requests one: unique per account and endpoint. */
export interface Idempotency {
  readonly key: string
  readonly bodyHash: Bytes32
}

export interface Acceptance {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly chainId: bigint
  /** JSON: all that the endpoint needs to go on with the request after a restart. Sealed at rest. */
  readonly body: string
  readonly idempotency: Idempotency | null
  readonly ops: ReadonlyArray<OpIntent>
  /** Deposit and balance of every wallet that appears in `ops`, wei, as read for this request. */
  readonly funds: ReadonlyArray<{ readonly space: NonceSpace; readonly available: bigint }>
  readonly deployments: ReadonlyArray<DeploymentIntent>
  /** Elements that are refused already. */
  readonly failed: ReadonlyArray<FailedElement>
}

/**
 * - `accepted`: all of it is durable
 * - `known`: another request of the account and endpoint has the idempotency key
 * - `nonceTaken`: another op owns the nonce of `index`; read the chain again
 * - `reserved`: ops under way hold so much of the wallet's funds that `index` may not be covered; wait for them
 * - `otherConfiguration`: an authorisation for another configuration of that wallet is alive
 */
export type AcceptanceResult =
  | { readonly _tag: "accepted" }
  | { readonly _tag: "known"; readonly requestId: string }
  | { readonly _tag: "nonceTaken"; readonly index: number }
  | { readonly _tag: "reserved"; readonly index: number; readonly reserved: bigint }
  | { readonly _tag: "otherConfiguration"; readonly deployment: number }

/** An element's op, by its request. */
export interface OpRef {
  readonly requestId: string
  readonly index: number
}

export interface AllocationRequest extends Lane {
  readonly access: LaneAccess
  /** The EOA's next nonce as the chain tells it (pending). */
  readonly chainNonce: bigint
  /** Gas limit times maximal price plus value, and the layer 1 fee where there is one, wei. */
  readonly maxCost: bigint
  /** Balance of the EOA, wei, as read for this transaction. */
  readonly balance: bigint
  /** The accepted ops that the transaction carries, of one request or several. */
  readonly ops: ReadonlyArray<OpRef>
  /** The accepted request whose own transaction it is, when it carries no ops; null for one that only fills a nonce. */
  readonly direct: string | null
}

export type AllocationResult =
  | { readonly _tag: "allocated"; readonly nonce: bigint }
  | { readonly _tag: "insufficientFunds"; readonly reserved: bigint }

/** One set of bytes that was signed for a nonce. */
export interface TransactionVersion {
  readonly txHash: Bytes32
  readonly raw: Hex
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

export interface SignedTransaction extends Lane, TransactionVersion {
  readonly nonce: bigint
  /** Wei by which it may cost more than what was allocated, or than the version before it. */
  readonly addedCost: bigint
}

/** What the chain said of one op. */
export interface OpSettlement {
  readonly userOpHash: Bytes32
  readonly success: boolean
  /** The transaction in which it landed. */
  readonly txHash: Bytes32
  /** What its call reverted with; null when it succeeded or gave no data. */
  readonly revertData: Hex | null
}

export interface TransactionSettlement extends Lane {
  readonly nonce: bigint
  readonly txHash: Bytes32
  readonly success: boolean
  readonly blockNumber: bigint
  readonly blockHash: Bytes32
}

/** An op as the journal knows it. */
export interface OpRecord {
  readonly accountId: AccountId
  readonly requestId: string
  readonly index: number
  readonly userOpHash: Bytes32 | null
  readonly space: NonceSpace
  readonly nonceKey: bigint
  readonly sequence: bigint
  readonly returned: Hex | null
  /**
   * `accepted`: in no signed transaction that could still be mined; `sent`: in one, or handed to a bundler;
   * `settled`: the chain has its outcome; `abandoned`: given up before it was ever sent.
   */
  readonly state: "accepted" | "sent" | "settled" | "abandoned"
  /** The newest version of the transaction that carries it; after settlement the one in which it landed. */
  readonly txHash: Bytes32 | null
  readonly success: boolean | null
  readonly revertData: Hex | null
}

/** An accepted request. */
export interface RequestRecord {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly chainId: bigint
  readonly body: string
  readonly idempotency: Idempotency | null
  /** Unix milliseconds. */
  readonly acceptedAt: number
  /** The latest op of each element that has one, by index. */
  readonly ops: ReadonlyArray<OpRecord>
  readonly failed: ReadonlyArray<FailedElement>
  /** Hashes of its transactions that may be or are mined, one for each nonce (the newest version, or the mined one), in order of signing. */
  readonly txHashes: ReadonlyArray<Bytes32>
  /** What `finish` stored; null while the request is not final. */
  readonly outcome: string | null
}

/** Accepted ops of a request that somebody else's bundler is given, signed. */
export interface HandingOver {
  readonly requestId: string
  /** The node that will tell what became of them. Sealed at rest: keys sit in paths. */
  readonly node: Pick<LaneAccess, "rpc" | "trust">
  /** Number of a block before which none of them can have landed. */
  readonly since: bigint
  /** `signed`: the ABI encoding of the op with its signature. */
  readonly ops: ReadonlyArray<{ readonly index: number; readonly signed: Hex }>
}

/** An op in other hands: all that is needed to offer it again, and to find out what became of it. */
export interface Handover extends OpRef {
  readonly accountId: AccountId
  readonly space: NonceSpace
  readonly userOpHash: Bytes32
  readonly node: Pick<LaneAccess, "rpc" | "trust">
  readonly since: bigint
  readonly signed: Hex
  /** The transaction in which it landed, not yet at settled depth as far as is known; null: none. */
  readonly landedIn: Bytes32 | null
}

/** A nonce of a lane with everything that was signed for it. */
export interface TransactionRecord extends Lane {
  readonly nonce: bigint
  readonly access: LaneAccess
  /**
   * `signed`: perhaps sent, not mined as far as is known; `mined`: in a block, not yet at settled depth; `settled`: for
   * good; `foreign`: somebody else's transaction used the nonce.
   */
  readonly state: "signed" | "mined" | "settled" | "foreign"
  /** Oldest first; never empty. */
  readonly versions: ReadonlyArray<TransactionVersion>
  /** Unix milliseconds at which the newest version was signed. */
  readonly signedAt: number
  readonly ops: ReadonlyArray<OpRef & { readonly userOpHash: Bytes32; readonly entryPoint: Address }>
  readonly direct: string | null
  readonly mined: {
    readonly txHash: Bytes32
    readonly success: boolean
    readonly blockNumber: bigint
    readonly blockHash: Bytes32
  } | null
}

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
     * The same request may be accepted again with more ops; `body` and `idempotency` are those of the first time. An
     * element that is accepted anew counts as failed no more.
     *
     * Judged in the order of the results: idempotency, nonces, money, deployments; the first obstacle in the order of the
     * ops (the deployments) is the answer, and leaves nothing behind. Money: what the other requests' ops under way hold
     * of the wallet, at all EntryPoints of the chain together, and what this request's ops hold of it, is within what is
     * available. When nobody else holds any of it, it is accepted: the caller has judged that case.
     *
     * Fails when the request was accepted as another one (account, endpoint, chain), is final, has an op of the same
     * index that is not abandoned, names another chain in its parts, refuses an element that it accepts, or gives no
     * funds for one of its wallets.
     */
    readonly accept: (acceptance: Acceptance) => Effect.Effect<AcceptanceResult, JournalError>
    /** Notes why elements of an accepted request will not be done. The latest word on an index counts. */
    readonly refuse: (
      requestId: string,
      failed: ReadonlyArray<FailedElement>
    ) => Effect.Effect<void, JournalError>
    /**
     * Stores the final answer (JSON) of an accepted request. The first one stays until the request is reopened. False, and
     * nothing is stored: an op of it is `accepted` or `sent`, or its direct transaction `signed`; it is not at its end.
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
    /** Accepted requests that are not final, oldest first. */
    readonly unfinished: Effect.Effect<ReadonlyArray<string>, JournalError>
    /**
     * Forgets body, outcome and idempotency key of final requests that were accepted before that time (Unix
     * milliseconds), none of whose ops is under way and none of whose transactions is signed or mined. They stay final:
     * nothing is accepted under their ids. Nonces and hashes stay.
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
     * Hands out the lane's next nonce: the lowest one from the chain's on for which nothing was ever signed. Nothing else
     * hands out nonces. The caller has one allocation of a lane at a time that is neither signed nor handed back:
     * another call takes it over, and unsigned nonces below the new one are forgotten.
     *
     * `insufficientFunds`: what the lane's signed transactions that are not mined may cost, and this one's cost, is
     * more than the balance; nothing is handed out. Fails when one of the ops is not `accepted`, is of another chain or
     * authority, or when the direct request was not accepted on this chain, is final, or has a signed transaction that
     * is not `foreign`.
     */
    readonly allocate: (request: AllocationRequest) => Effect.Effect<AllocationResult, JournalError>
    /** The signer refused: the nonce goes to the lane's next work. Fails when it was signed or never handed out. */
    readonly unallocate: (lane: Lane, nonce: bigint) => Effect.Effect<void, JournalError>
    /**
     * Stores signed bytes of an allocated or signed nonce. From here on the transaction counts as perhaps sent, and so do
     * its ops. A nonce may have several versions, of which each adds to what it may cost; once it is mined, or while it is nobody's, it takes none. The first
     * one fails also when one of the ops has no hash, was given up since the allocation, or is sent some other way by
     * now, and when the direct request is final or has another signed transaction by now.
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
    readonly strand: (lane: Lane, nonce: bigint) => Effect.Effect<Affected, JournalError>
    /**
     * Ops are handed to somebody else's bundler: `sent`, in no transaction of ours. They have hashes. Fails when one of
     * them is unknown, settled, or in a signed transaction; handed over again, nothing changes.
     */
    readonly handOver: (handing: HandingOver) => Effect.Effect<void, JournalError>
    /** What became of ops that were handed over, or that others landed. Ops that are not `accepted` or `sent` are ignored. */
    readonly land: (
      authority: Address,
      chainId: bigint,
      ops: ReadonlyArray<OpSettlement>
    ) => Effect.Effect<Affected, JournalError>
    /**
     * Landings of ops that were handed over have vanished from the chain: the ops are `sent` again, without outcomes, and
     * their requests not final any more. Ignored once `finaliseLanded` was told of them.
     */
    readonly unland: (
      authority: Address,
      chainId: bigint,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<Affected, JournalError>
    /** Landings of ops that were handed over have reached settled depth: they need to be watched no more. */
    readonly finaliseLanded: (
      authority: Address,
      chainId: bigint,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<void, JournalError>
    /** Ops that were handed over can land no more: they are `accepted` again. Ops in a transaction of ours are ignored. */
    readonly takeBack: (
      requestId: string,
      indexes: ReadonlyArray<number>
    ) => Effect.Effect<void, JournalError>
    /** Every op that was handed over and is neither taken back nor landed for good, in the order of acceptance. */
    readonly handedOver: Effect.Effect<ReadonlyArray<Handover>, JournalError>
    /** Every transaction that is signed or mined and not settled, by lane and nonce. */
    readonly open: Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError>
    /** Those of one lane. */
    readonly openOf: (lane: Lane) => Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError>
    /** The transaction of the account (its access's) that has this hash among its versions; null: none. */
    readonly findTransaction: (
      accountId: AccountId,
      chainId: bigint,
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
