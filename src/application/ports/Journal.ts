import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../domain/evm/Address.js"
import type { Bytes32, Hex } from "../../domain/evm/Hex.js"
import type { AccountId } from "./Accounts.js"

/** The store failed; nothing of the call is durable. */
export class JournalError extends Data.TaggedError("JournalError")<{ readonly message: string }> {}

/** The ordered stream of transactions of one EOA on one chain. */
export interface Lane {
  readonly chainId: bigint
  readonly signer: Address
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

export interface Acceptance {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly chainId: bigint
  readonly ops: ReadonlyArray<OpIntent>
  /** Deposit and balance of every wallet that appears in `ops`, wei, as read for this request. */
  readonly funds: ReadonlyArray<{ readonly space: NonceSpace; readonly available: bigint }>
  readonly deployments: ReadonlyArray<DeploymentIntent>
}

/**
 * - `accepted`: all of it is durable
 * - `nonceTaken`: another op owns the nonce of `index`; read the chain again
 * - `reserved`: ops under way hold so much of the wallet's funds that `index` may not be covered; wait for them
 * - `otherConfiguration`: an authorisation for another configuration of that wallet is alive
 */
export type AcceptanceResult =
  | { readonly _tag: "accepted" }
  | { readonly _tag: "nonceTaken"; readonly index: number }
  | { readonly _tag: "reserved"; readonly index: number; readonly reserved: bigint }
  | { readonly _tag: "otherConfiguration"; readonly deployment: number }

export interface AllocationRequest extends Lane {
  readonly requestId: string
  /** The EOA's next nonce as the chain tells it (pending). */
  readonly chainNonce: bigint
  /** Gas limit times maximal price plus value, wei. */
  readonly maxCost: bigint
  /** Balance of the EOA, wei, as read for this request. */
  readonly balance: bigint
  /** The ops of the request that the transaction carries, by their index. */
  readonly ops: ReadonlyArray<number>
}

export type AllocationResult =
  | { readonly _tag: "allocated"; readonly nonce: bigint }
  | { readonly _tag: "insufficientFunds"; readonly reserved: bigint }

export interface SignedTransaction extends Lane {
  readonly nonce: bigint
  readonly txHash: Bytes32
  readonly raw: Hex
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/** What the chain said of one op. */
export interface OpSettlement {
  readonly userOpHash: Bytes32
  /** Null: it did not land, and is in no transaction of ours any more; it is given up, its nonce and money are free. */
  readonly success: boolean | null
  /** The transaction in which it landed, or failed to. */
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
  /** `accepted`: not in a signed transaction yet; `sent`: in one that may have left; the others are final. */
  readonly state: "accepted" | "sent" | "settled" | "abandoned"
  /** The transaction that carries it, once it is signed; after settlement the one in which it landed. */
  readonly txHash: Bytes32 | null
  readonly success: boolean | null
  readonly revertData: Hex | null
}

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
     *
     * Judged in the order of the results: nonces, money, deployments; the first obstacle in the order of the ops (the
     * deployments) is the answer, and leaves nothing behind. Money: what the other requests' ops under way hold of the
     * wallet, at all EntryPoints of the chain together, and what this request's ops hold of it, is within what is
     * available. When nobody else holds any of it, it is accepted: the caller has judged that case.
     *
     * Fails when the request was accepted as another one (account, endpoint, chain), has an op of the same index that
     * is not abandoned, names another chain in its parts, or gives no funds for one of its wallets.
     */
    readonly accept: (acceptance: Acceptance) => Effect.Effect<AcceptanceResult, JournalError>
    /**
     * Notes the hashes of accepted ops that had none yet, before they are signed. The same hash again changes
     * nothing; another one, or an op that is not accepted, fails.
     */
    readonly identify: (
      requestId: string,
      ops: ReadonlyArray<{ readonly index: number; readonly userOpHash: Bytes32 }>
    ) => Effect.Effect<void, JournalError>
    /**
     * Gives up ops of a request, by their index, of which no signed transaction was ever stored: frees their nonces,
     * keys and money. The same request may then accept work of the same index anew. Fails, and gives up none, when
     * one of them is in a signed transaction or has landed; unknown indexes are ignored.
     */
    readonly abandon: (requestId: string, indexes: ReadonlyArray<number>) => Effect.Effect<void, JournalError>
    /**
     * Hands out the lane's next nonce: the lowest one that was handed out, never signed and not used up on the chain,
     * else the one after the highest known to the journal or the chain. Nothing else hands out nonces. The caller
     * has one allocation of a lane at a time that is neither signed nor handed back: another call takes it over.
     *
     * `insufficientFunds`: what the lane's signed transactions that are not settled may cost, and this one's cost, is
     * more than the balance; nothing is handed out. Fails when the request was not accepted on this chain, or one of
     * the ops is final or is in a signed transaction that is not settled.
     */
    readonly allocate: (request: AllocationRequest) => Effect.Effect<AllocationResult, JournalError>
    /** The signer refused: the nonce goes to the lane's next work. Fails when it was signed or never handed out. */
    readonly unallocate: (lane: Lane, nonce: bigint) => Effect.Effect<void, JournalError>
    /**
     * Stores the signed bytes of an allocated nonce. From here on the transaction counts as perhaps sent, and so do its
     * ops. A nonce may have several versions; once it is settled, or while it is nobody's, it takes none. Fails
     * also when one of the ops was given up since the allocation, or is in another signed transaction by now.
     */
    readonly recordSigned: (transaction: SignedTransaction) => Effect.Effect<void, JournalError>
    /**
     * Records the mined transaction of a nonce and what became of the ops; frees what they held. Only a version that was
     * stored can settle its nonce. What is settled stays as it is: the same call again changes nothing. An op whose
     * hash is not known to the lane's EOA, or that is given up, is ignored; one of the transaction that is not named stays `sent`.
     */
    readonly settle: (
      transaction: TransactionSettlement,
      ops: ReadonlyArray<OpSettlement>
    ) => Effect.Effect<void, JournalError>
    /** An op by its hash, when it belongs to this account; the latest one, and one given up only when no other is left. */
    readonly findOp: (
      accountId: AccountId,
      chainId: bigint,
      userOpHash: Bytes32
    ) => Effect.Effect<OpRecord | null, JournalError>
  }
>() {}
