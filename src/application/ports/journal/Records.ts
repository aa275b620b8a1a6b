import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { PolicyName } from "../Policies.js"
import type { AccountId } from "../Tenants.js"
import type { OpRef } from "./OpRef.js"
import type {
  CancellationCode,
  DeploymentIntent,
  DirectSpace,
  FailedElement,
  Idempotency,
  Metadata,
  NonceSpace,
  OpRecord,
  Schedule,
  Space
} from "./Requests.js"
import type { Lane, LaneAccess, TransactionVersion } from "./Transactions.js"

/** An operation from preparation to end: one record per step. */

/**
 * - `op`: the service prepares and signs it
 * - `given`: the caller has signed it; it is never changed
 * - `creation`: the deployer authorises a wallet
 * - `direct`: a transaction of the signer, without an EntryPoint
 */
export type Kind = "op" | "given" | "creation" | "direct"

/** Unix seconds by the chain's clock, both included; `validUntil` 0: no end. */
export interface Window {
  readonly validAfter: number
  readonly validUntil: number
}

/**
 * Proof that the wallet agrees. `by`: these signers, each at its place in the signature; `made`: the proof as received;
 * `deployer`: the factory's deployer; null: the signature of the transaction.
 */
export type Proof =
  | { readonly by: ReadonlyArray<{ readonly signer: Address; readonly place: number }> }
  | { readonly made: Hex }
  | "deployer"
  | null

/** A transaction of the signer, before it has a nonce and prices. */
export interface DirectCall {
  /** Null: the transaction creates a contract. */
  readonly to: Address | null
  readonly data: Hex
  readonly value: bigint
  readonly gasLimit: bigint
}

interface Prepared extends OpRef {
  /** The journal chooses a direct transaction's key: 0 until then. */
  readonly nonceKey: bigint
  readonly sequence: bigint
  /** Null: a signature is part of it (a creation's), or it has none (a direct transaction). */
  readonly userOpHash: Bytes32 | null
  readonly proof: Proof
  readonly window: Window | null
  /** Elements of the request that must land before it, or in front of it in the same bundle. */
  readonly dependsOn: ReadonlyArray<number>
  /** Most wei that the wallet may pay for it: prefund and value. */
  readonly reserve: bigint
  /** Its share of the layer 1 fee, wei. */
  readonly l1Fee: bigint
  /** Its call's return data in the simulation; null: not worth keeping. */
  readonly returned: Hex | null
  /** Unix milliseconds; from then on it is prepared again before signing. Null: no limit. */
  readonly goodUntil: number | null
}

/** An element that is ready for signing: all data for signing and bundling, except the keys. */
export type PreparedOp = Prepared &
  (
    | {
        readonly kind: Exclude<Kind, "direct">
        /** A given op has its signature; other kinds hold a placeholder or none. */
        readonly unsigned: UserOperation
        readonly space: NonceSpace
      }
    | { readonly kind: "direct"; readonly unsigned: DirectCall; readonly space: DirectSpace }
  )

/** Identifies an op's row. An element has one row that is not abandoned; replaced rows keep separate ids. */
export type OpId = number

export interface Op extends Omit<OpRecord, "returned"> {
  readonly opId: OpId
  readonly endpoint: string
  readonly key: LaneAccess["key"] | null
  /** See `Acceptance.contextDigest`; null: another version accepted the request. */
  readonly contextDigest: string | null
  /** Unix milliseconds of the request's acceptance; `notBefore`: Unix seconds until which it had to wait. */
  readonly acceptedAt: number
  readonly notBefore: number | null
  /**
   * Signed bytes were recorded or handed over, or may have been, so others may know them. The op keeps its nonce until
   * all of its exposed versions are dead.
   */
  readonly exposed: boolean
  /** Null: another version prepared the op, so it is prepared again. */
  readonly prepared: PreparedOp | null
}

/** An earlier version of an op, under the same nonce. */
export interface OpVersion {
  /** The element's current row. */
  readonly opId: OpId
  readonly userOpHash: Bytes32
}

export type RenumberResult =
  | { readonly _tag: "renumbered"; readonly opIds: ReadonlyArray<OpId> }
  | ({ readonly _tag: "nonceTaken" } & OpRef)
  | ({ readonly _tag: "notReady" } & OpRef)

/** An op with its signature, until its bytes are recorded. */
export interface SignedOp {
  readonly opId: OpId
  readonly op: UserOperation
  readonly userOpHash: Bytes32
}

export interface Acceptance {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  /** The submitting EOA and its chain: the lane's worker works on the request. */
  readonly lane: Lane
  readonly key: LaneAccess["key"]
  /** JSON: everything the endpoint needs to resume the request after a restart. Sealed at rest. */
  readonly body: string
  /** Identifies data shared with other requests (account, settings, signers, payer), made once for all. */
  readonly contextDigest: string
  readonly idempotency: Idempotency | null
  /** Unix milliseconds. Absent: at its acceptance. */
  readonly arrivedAt?: number
  /** Number of operations or accounts in the request. */
  readonly elements: number
  /** Number of elements to open later, which are neither in `ops` nor in `failed`. */
  readonly unopened: number
  readonly ops: ReadonlyArray<PreparedOp>
  /** Deposit and balance of every wallet in `ops`, wei, as read for them; none for direct transactions. */
  readonly funds: ReadonlyArray<{ readonly space: Space; readonly available: bigint }>
  readonly deployments: ReadonlyArray<DeploymentIntent>
  readonly failed: ReadonlyArray<FailedElement>
  readonly note: string | null
  readonly metadata: Metadata
  /** JSON of what its ops would move, see `Previews.of`. Sealed at rest. Absent or null: none. */
  readonly previews?: string | null
  /** Policies that bound it at its acceptance. Absent: none. */
  readonly policies?: ReadonlyArray<PolicyName>
  /** When elements that wait for their windows are opened; null: unopened elements are due. */
  readonly schedule: Schedule | null
}

/** Elements of an accepted request that are opened together: they become ops, or fail. */
export interface Opening
  extends Pick<Acceptance, "requestId" | "ops" | "funds" | "deployments" | "failed" | "schedule"> {}

/**
 * - `accepted`: the whole request is durable
 * - `known`: another request of the account and endpoint has the idempotency key, possibly one of the same list
 * - `nonceTaken`: another op owns the nonce of `index`; read the chain again. `isSettled`: that op has landed; the node
 *   that was read does not know, or a reorganisation has undone it
 * - `reserved`: ops under way hold so much of the wallet's funds that `index` may not be covered
 * - `otherConfiguration`: an authorisation for another configuration of that wallet is alive
 * - `over`: the request was declined, or after its arrival another request with its key was refused; when elements are
 *   opened: it was cancelled or is final
 */
export type AcceptanceResult =
  | { readonly _tag: "accepted" }
  | { readonly _tag: "known"; readonly requestId: string; readonly bodyHash: Bytes32 }
  | { readonly _tag: "nonceTaken"; readonly index: number; readonly isSettled: boolean }
  | { readonly _tag: "reserved"; readonly index: number; readonly reserved: bigint }
  | { readonly _tag: "otherConfiguration"; readonly deployment: number }
  | { readonly _tag: "over" }

/** Intake's query before it prepares, see `RequestJournal.look`. */
export interface JournalQuery {
  readonly idempotency: ReadonlyArray<{
    readonly accountId: AccountId
    readonly endpoint: string
    readonly key: string
  }>
  readonly spaces: ReadonlyArray<Space>
}

export interface JournalState {
  /** In the query's order; null: the key is free. */
  readonly known: ReadonlyArray<{ readonly requestId: string; readonly bodyHash: Bytes32 } | null>
  /** In the query's order. */
  readonly spaces: ReadonlyArray<{
    /** Leased keys, and keys of ops under way. */
    readonly keys: ReadonlySet<bigint>
    /** Sum that ops under way hold of the wallet at all EntryPoints of the chain, wei. */
    readonly held: bigint
  }>
}

/** A request with unopened elements whose first one is due. */
export interface Unopened {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly contextDigest: string | null
  readonly unopened: number
  readonly acceptedAt: number
}

/** A request with overdue work. */
export interface Overdue extends Pick<Acceptance, "endpoint" | "requestId"> {
  /** Unix milliseconds. */
  readonly acceptedAt: number
  /** Some of its work is or was exposed: only its other work expires. */
  readonly isExposed: boolean
  /** See `RequestJournal.note`. */
  readonly isNoted: boolean
}

/** The part of a request that elements are prepared again from. */
export interface Body {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly contextDigest: string | null
  /** Null: sealed under another key. */
  readonly body: string | null
  readonly elements: number
  readonly failed: ReadonlyArray<FailedElement>
  readonly cancelled: CancellationCode | null
  /** Indexes of elements that have an op. */
  readonly opened: ReadonlyArray<number>
}

/** The first signed bytes of a nonce, and the ops that they carry. */
export interface Recording extends Lane, TransactionVersion {
  readonly access: LaneAccess
  /** The lowest nonce from `chainNonce` on that was never signed for, see `TransactionJournal.nextNonce`. */
  readonly nonce: bigint
  /** The EOA's next nonce on the chain (pending). */
  readonly chainNonce: bigint
  /** Gas limit times maximal price, plus value, plus the layer 1 fee where there is one, wei. */
  readonly maxCost: bigint
  /** The EOA's balance, as read for this transaction, wei. */
  readonly balance: bigint
  /** In bundle order, with the signed hashes. Empty: the transaction only fills a nonce. */
  readonly ops: ReadonlyArray<{ readonly opId: OpId; readonly userOpHash: Bytes32 | null }>
}

/**
 * Except for `recorded`, the call leaves no trace and the bytes are discarded.
 *
 * - `recorded`: by this call, or the same bytes by an earlier call
 * - `nonceUsed`: other bytes were signed for the nonce, or a lower nonce is free
 * - `otherRoute`: a transaction of another route is in flight, see `Route`
 * - `insufficientFunds`: the transactions in flight and this one may cost more than the balance
 * - `givenUp`: these ops are not ready, or not the signed ones: cancelled, or prepared again
 */
export type RecordResult =
  | { readonly _tag: "recorded" }
  | { readonly _tag: "nonceUsed" }
  | { readonly _tag: "otherRoute" }
  | { readonly _tag: "insufficientFunds"; readonly reserved: bigint }
  | { readonly _tag: "givenUp"; readonly opIds: ReadonlyArray<OpId> }

/** Bytes that replace others of the same nonce at higher prices. */
export interface Replacement extends Lane, TransactionVersion {
  readonly nonce: bigint
  /** Wei by which it may cost more than the versions before it. */
  readonly addedCost: bigint
}

/** The final answer to a request. */
export interface Final {
  readonly requestId: string
  /** JSON. */
  readonly outcome: string
  /** The answer's data for the event. */
  readonly summary: Readonly<Record<string, unknown>>
  /** The request's newest event when the answer was computed, see `RequestJournal.newestEvents`. */
  readonly sequence: number
}

/** An account's requests without a final answer, and their elements. */
export interface Tally {
  readonly accountId: AccountId
  readonly requests: number
  readonly elements: number
}

export interface BusyLane {
  readonly lane: Lane
  /** The account of one of its requests or transactions, and that one's key of the lane; null: unknown. */
  readonly accountId: AccountId
  readonly key: LaneAccess["key"] | null
}
