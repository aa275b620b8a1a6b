import type * as Redacted from "effect/Redacted"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { SignerRef } from "../Signers.js"
import type { AccountId } from "../Tenants.js"
import type { OpRef } from "./OpRef.js"

/** The ordered stream of transactions of one EOA on one chain. */
export interface Lane {
  readonly chainId: bigint
  readonly signer: Address
}

/** The block that something is in, and how deep that is. */
export interface Depth {
  readonly blockNumber: bigint
  /** Blocks from that one to the head of the chain, both counted: so many at least, when it was seen. */
  readonly confirmations: number
}

/** How a lane's work goes on when nobody waits for it any more, in another process perhaps. */
export interface LaneAccess {
  readonly accountId: AccountId
  /** The lane's key: one of the account's, or the service's own EOA. */
  readonly key: SignerRef | "serviceEoa"
  /** The node, and who named it. Sealed at rest: keys sit in paths. Null: it was sealed under another key. */
  readonly rpc: Redacted.Redacted<string> | null
  readonly trust: "caller" | "operator"
}

/** Work of a lane that is not at its end. */
export interface LaneWork {
  readonly lane: Lane
  /** The account of one of its requests or transactions, and the key of the lane as that names it; null: not known. */
  readonly accountId: AccountId
  readonly key: LaneAccess["key"] | null
  /** Its accepted requests that are not final, oldest first, without those that wait for a time and are not due. */
  readonly requests: ReadonlyArray<{
    readonly requestId: string
    readonly accountId: AccountId
    readonly endpoint: string
    /** How many operations or accounts it has. */
    readonly elements: number
    /** Unix milliseconds. */
    readonly acceptedAt: number
    /** Until then it had to wait, Unix seconds; null: it never had. */
    readonly notBefore: number | null
  }>
  /** Whether it has transactions that are signed or mined and not settled. */
  readonly hasTransactions: boolean
}

export interface AllocationRequest extends Lane {
  readonly access: LaneAccess
  /** The EOA's next nonce as the chain tells it (pending). */
  readonly chainNonce: bigint
  /**
   * Nonces below this one are used at the profile's `confirmations`, by whatever transaction: none of them holds another
   * route up. 0: not known.
   */
  readonly drainedTo: bigint
  /** Gas limit times maximal price plus value, and the layer 1 fee where there is one, wei. */
  readonly maxCost: bigint
  /** Balance of the EOA, wei, as read for this transaction. */
  readonly balance: bigint
  /**
   * The accepted ops that the transaction carries, of one EntryPoint, of one request or several. Refused where an element
   * has been accepted anew since, as an op with another hash.
   */
  readonly ops: ReadonlyArray<OpRef & { readonly userOpHash?: Bytes32 }>
  /** The accepted request whose own transaction it is, when it carries no ops; null for one that only fills a nonce. */
  readonly direct: string | null
}

/**
 * What a transaction calls: the EntryPoint of the ops that it carries, or whatever the signer's own transaction calls
 * (`direct`). Null is a transaction that only fills a nonce, which calls nothing.
 *
 * Code that a transaction of one route runs could submit the bound ops of a pending transaction of another route: the
 * signer is tx.origin there too. So a lane has transactions of one route in flight at a time.
 */
export type Route = Address | "direct" | null

export type AllocationResult =
  | { readonly _tag: "allocated"; readonly nonce: bigint }
  | { readonly _tag: "insufficientFunds"; readonly reserved: bigint }
  | { readonly _tag: "otherRoute" }

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
  /** Whether the nonce has other versions, of the same work at lower prices; else it was just allocated. */
  readonly replaces: boolean
  /** As it was allocated; of no meaning to later versions. */
  readonly drainedTo: bigint
}

export interface TransactionSettlement extends Lane, Depth {
  readonly nonce: bigint
  readonly txHash: Bytes32
  readonly success: boolean
  readonly blockHash: Bytes32
}

/** A nonce of a lane with everything that was signed for it. */
export interface TransactionRecord extends Lane {
  readonly nonce: bigint
  readonly access: LaneAccess
  /**
   * `signed`: perhaps sent, not mined as far as is known; `mined`: in a block, not yet at settled depth; `settled`: for
   * good; `external`: a transaction that is not castellan's used the nonce.
   */
  readonly state: "signed" | "mined" | "settled" | "external"
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
