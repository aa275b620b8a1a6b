import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
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

/** What an operation is from its preparation to its end: one record for each step. */

/**
 * - `op`: the service prepares and signs it
 * - `given`: the caller has signed it; it is never changed
 * - `creation`: the deployer authorises a wallet
 * - `direct`: a transaction of the signer's own, which no EntryPoint sees
 */
export type Kind = "op" | "given" | "creation" | "direct"

/** Unix seconds by the chain's clock, both included; `validUntil` 0: no end. */
export interface Window {
  readonly validAfter: number
  readonly validUntil: number
}

/**
 * Who proves that the wallet agrees. `by`: these signers, each in the place that the signature has for it; `made`: the proof
 * as it came; `deployer`: the factory's deployer; null: whoever signs the transaction proves it by that.
 */
export type Proof =
  | { readonly by: ReadonlyArray<{ readonly signer: Address; readonly place: number }> }
  | { readonly made: Hex }
  | "deployer"
  | null

/** A transaction of the signer's own, before it has a nonce and prices. */
export interface DirectCall {
  /** Null: the transaction creates a contract. */
  readonly to: Address | null
  readonly data: Hex
  readonly value: bigint
  readonly gasLimit: bigint
}

interface Prepared extends OpRef {
  /** Of a direct transaction the journal chooses the key: 0 until then. */
  readonly nonceKey: bigint
  readonly sequence: bigint
  /** Null: a signature is part of it (a creation's), or it has none (a direct transaction). */
  readonly userOpHash: Bytes32 | null
  readonly proof: Proof
  readonly window: Window | null
  /** Elements of the request that have to land before it, or in front of it in the same bundle. */
  readonly dependsOn: ReadonlyArray<number>
  /** Wei that the wallet may have to pay for it at most: prefund and value. */
  readonly reserve: bigint
  /** Its part of the layer 1 fee, wei. */
  readonly l1Fee: bigint
  /** What its call returned in the simulation; null: nothing worth keeping. */
  readonly returned: Hex | null
  /** Unix milliseconds: from then on it is prepared again before it is signed; null: it stays good. */
  readonly goodUntil: number | null
}

/** An element that is ready to be signed: all that signing and bundling need beside the keys. */
export type PreparedOp = Prepared &
  (
    | {
        readonly kind: Exclude<Kind, "direct">
        /** Of a given op with its signature; else without one that counts. */
        readonly unsigned: UserOperation
        readonly space: NonceSpace
      }
    | { readonly kind: "direct"; readonly unsigned: DirectCall; readonly space: DirectSpace }
  )

/** Names a row of an op. An element has one row that is not abandoned; those that it replaced have ids of their own. */
export type OpId = number

/** The row of an op. */
export interface Op extends Omit<OpRecord, "returned"> {
  readonly opId: OpId
  readonly endpoint: string
  readonly key: LaneAccess["key"] | null
  /** See `Acceptance.contextDigest`; null: another version accepted the request. */
  readonly contextDigest: string | null
  /** Unix milliseconds at which the request was accepted; and until when it had to wait, Unix seconds. */
  readonly acceptedAt: number
  readonly notBefore: number | null
  /**
   * Signed bytes of it were recorded or handed over, or may have been: others may know them. It keeps its nonce until all of
   * its exposed versions are dead.
   */
  readonly exposed: boolean
  /** Null: it is prepared again, since another version prepared it. */
  readonly prepared: PreparedOp | null
}

/** An earlier version of an op, under the same nonce. */
export interface OpVersion {
  /** The row that the element has now. */
  readonly opId: OpId
  readonly userOpHash: Bytes32
}

export type RenumberResult =
  | { readonly _tag: "renumbered"; readonly opIds: ReadonlyArray<OpId> }
  | ({ readonly _tag: "nonceTaken" } & OpRef)
  | ({ readonly _tag: "notReady" } & OpRef)

/** An op with its signature, for as long as it takes to record its bytes. */
export interface SignedOp {
  readonly opId: OpId
  readonly op: UserOperation
  readonly userOpHash: Bytes32
}

/** A request as it is accepted. */
export interface Acceptance {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  /** The EOA that submits what becomes of it, and its chain: whoever works on the lane works on the request. */
  readonly lane: Lane
  readonly key: LaneAccess["key"]
  /** JSON: all that the endpoint needs to go on with the request after a restart. Sealed at rest. */
  readonly body: string
  /** Names what the request shares with others (account, settings, signers, payer), so that it is made once for all of them. */
  readonly contextDigest: string
  readonly idempotency: Idempotency | null
  /** How many operations or accounts the request has. */
  readonly elements: number
  /** Elements that are opened later: neither among `ops` nor among `failed`. */
  readonly unopened: number
  readonly ops: ReadonlyArray<PreparedOp>
  /** Deposit and balance of every wallet that appears in `ops`, wei, as read for them; none of direct transactions. */
  readonly funds: ReadonlyArray<{ readonly space: Space; readonly available: bigint }>
  readonly deployments: ReadonlyArray<DeploymentIntent>
  readonly failed: ReadonlyArray<FailedElement>
  readonly note: string | null
  readonly metadata: Metadata
  /** When elements that wait for their windows are opened; null: what is not opened is due. */
  readonly schedule: Schedule | null
}

/** Elements of an accepted request that are opened together: they become ops, or fail. */
export interface Opening
  extends Pick<Acceptance, "requestId" | "ops" | "funds" | "deployments" | "failed" | "schedule"> {}

/**
 * - `accepted`: all of it is durable
 * - `known`: another request of the account and endpoint has the idempotency key, perhaps one of the same list
 * - `nonceTaken`: another op owns the nonce of `index`; read the chain again. `isSettled`: that one has landed, which the
 *   node that was read does not know, or a reorganisation has undone
 * - `reserved`: ops under way hold so much of the wallet's funds that `index` may not be covered
 * - `otherConfiguration`: an authorisation for another configuration of that wallet is alive
 * - `over`: the request was declined; where elements are opened: it was cancelled or is final
 */
export type AcceptanceResult =
  | { readonly _tag: "accepted" }
  | { readonly _tag: "known"; readonly requestId: string; readonly bodyHash: Bytes32 }
  | { readonly _tag: "nonceTaken"; readonly index: number; readonly isSettled: boolean }
  | { readonly _tag: "reserved"; readonly index: number; readonly reserved: bigint }
  | { readonly _tag: "otherConfiguration"; readonly deployment: number }
  | { readonly _tag: "over" }

/** What intake asks of the journal before it prepares: see `RequestJournal.look`. */
export interface Look {
  readonly idempotency: ReadonlyArray<{
    readonly accountId: AccountId
    readonly endpoint: string
    readonly key: string
  }>
  readonly spaces: ReadonlyArray<Space>
}

export interface Seen {
  /** In the order of the question; null: the key is free. */
  readonly known: ReadonlyArray<{ readonly requestId: string; readonly bodyHash: Bytes32 } | null>
  /** In the order of the question. */
  readonly spaces: ReadonlyArray<{
    /** Keys that ops under way use or that are handed out. */
    readonly keys: ReadonlySet<bigint>
    /** What ops under way hold of the wallet, at all EntryPoints of the chain together, wei. */
    readonly held: bigint
  }>
}

/** A request with elements that are not opened, of which the first is due. */
export interface Unopened {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly contextDigest: string | null
  readonly unopened: number
  readonly acceptedAt: number
}

/** A request of which something has waited for long. */
export interface Overdue extends Pick<Acceptance, "endpoint" | "requestId"> {
  /** Unix milliseconds. */
  readonly acceptedAt: number
  /** Something of it is or was exposed: the rest of it expires alone. */
  readonly isExposed: boolean
  /** See `RequestJournal.note`. */
  readonly isNoted: boolean
}

/** The part of a request from which elements are prepared again. */
export interface Body {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly contextDigest: string | null
  /** Null: it was sealed under another key. */
  readonly body: string | null
  readonly elements: number
  readonly failed: ReadonlyArray<FailedElement>
  readonly cancelled: CancellationCode | null
  /** Elements that have an op, by index. */
  readonly opened: ReadonlyArray<number>
}

/** Signed bytes of a nonce that nothing was signed for, and what they carry. */
export interface Recording extends Lane, TransactionVersion {
  readonly access: LaneAccess
  /** The lowest one from `chainNonce` on for which nothing was ever signed, see `TransactionJournal.nextNonce`. */
  readonly nonce: bigint
  /** The EOA's next nonce as the chain tells it (pending). */
  readonly chainNonce: bigint
  /** Nonces below this one are used at the profile's `confirmations`: none of them holds another route up. 0: not known. */
  readonly drainedTo: bigint
  /** Gas limit times maximal price plus value, and the layer 1 fee where there is one, wei. */
  readonly maxCost: bigint
  /** Balance of the EOA, wei, as read for this transaction. */
  readonly balance: bigint
  /** In the order of the bundle, with the hashes that were signed. None: it only fills a nonce. */
  readonly ops: ReadonlyArray<{ readonly opId: OpId; readonly userOpHash: Bytes32 | null }>
}

/**
 * What is not `recorded` leaves nothing behind, and its bytes are thrown away.
 *
 * - `recorded`: by this call, or the same bytes by an earlier one
 * - `nonceUsed`: something else was signed for the nonce, or a lower one is free
 * - `otherRoute`: a transaction of another route is in flight, see `Route`
 * - `insufficientFunds`: what is in flight and this one may cost more than the balance
 * - `givenUp`: these ops are not ready, or not the ones that were signed: cancelled, or prepared again
 */
export type RecordResult =
  | { readonly _tag: "recorded" }
  | { readonly _tag: "nonceUsed" }
  | { readonly _tag: "otherRoute" }
  | { readonly _tag: "insufficientFunds"; readonly reserved: bigint }
  | { readonly _tag: "givenUp"; readonly opIds: ReadonlyArray<OpId> }

/** Bytes that replace others of the same nonce, at higher prices. */
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
  /** What its event tells of the answer. */
  readonly summary: Readonly<Record<string, unknown>>
  /** The newest event of the request when it was read for the answer, see `RequestJournal.newestEvents`. */
  readonly sequence: number
}

/** Requests of an account without a final answer, and the elements that they have. */
export interface Tally {
  readonly accountId: AccountId
  readonly requests: number
  readonly elements: number
}

/** A lane that has something to do. */
export interface BusyLane {
  readonly lane: Lane
  /** The account of one of its requests or transactions, and the key of the lane as that names it; null: not known. */
  readonly accountId: AccountId
  readonly key: LaneAccess["key"] | null
}
