import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { PolicyName } from "../Policies.js"
import type { AccountId } from "../Tenants.js"
import type { OpRef } from "./OpRef.js"
import type { Depth, Lane } from "./Transactions.js"

/**
 * The space of a wallet's op nonces.
 *
 * `authority` is the submitting EOA, a key of the caller. Facts about a wallet come from the caller's node, which may
 * lie. Leases, nonces, money and outcomes are therefore separate for each authority, so that no caller's node decides
 * about the wallets of another caller's key.
 */
export interface NonceSpace {
  readonly authority: Address
  readonly chainId: bigint
  readonly entryPoint: Address
  readonly wallet: Address
}

/** EntryPoint of direct transactions, which have none. Their nonce key is their request's number. */
export const direct = "direct"

/** The nonce space of direct transactions: the wallet is the signer. */
export interface DirectSpace extends Omit<NonceSpace, "entryPoint"> {
  readonly entryPoint: typeof direct
}

export type Space = NonceSpace | DirectSpace

export interface LeaseRequest extends NonceSpace {
  /** The request that will use the keys. */
  readonly holder: string
  /** Inclusive range of nonce keys to choose from, lowest free first. */
  readonly keys: { readonly from: bigint; readonly to: bigint }
  readonly count: number
  /** Milliseconds after which an unused lease is free again, so that a crash blocks no key. */
  readonly ttlMillis: number
}

export interface DeploymentIntent {
  readonly chainId: bigint
  readonly factory: Address
  readonly create2Salt: Bytes32
  readonly configHash: Bytes32
  /** Unix seconds until which the future authorisation is valid. */
  readonly deadline: number
  /** Timestamp of the chain's latest block: an authorisation is alive until the chain has passed its deadline. */
  readonly chainTime: number
}

/** Reason why an element of a request will not be done. */
export interface FailedElement {
  readonly index: number
  readonly code: string
  readonly message: string
  readonly figures: Readonly<Record<string, string>>
}

/** Identity of a request: unique per account and endpoint. */
export interface Idempotency {
  readonly key: string
  readonly bodyHash: Bytes32
}

/** The caller's data for the request: strings under keys without a colon. */
export type Metadata = Readonly<Record<string, string>>

/** When an accepted request without work under way is resumed. */
export interface Schedule {
  /** Unix seconds by the chain's clock: the first of its windows that have not begun begins after it. */
  readonly notBefore: number
  /** Unix milliseconds by the service's clock: when the chain is read again. */
  readonly dueAt: number
}

/**
 * Reason why the unsigned part of a request never will be signed: its caller or the operator cancelled it, it expired,
 * or the operator dropped it while it was held.
 */
export type CancellationCode = "request_cancelled" | "request_expired" | "request_dropped"

export interface Cancellation {
  readonly code: CancellationCode
  /** Final answer (JSON) for a request without signed work. */
  readonly outcome: string
  /** Cancels only a request without signed work; other requests stay unchanged. */
  readonly onlyUnsigned: boolean
}

/** An op's outcome on the chain. */
export interface OpSettlement extends Depth {
  readonly userOpHash: Bytes32
  readonly success: boolean
  /** The transaction in which it landed. */
  readonly txHash: Bytes32
  /** Revert data of its call; null when it succeeded or returned no data. */
  readonly revertData: Hex | null
}

/** An op as the journal knows it. */
export interface OpRecord extends OpRef {
  readonly accountId: AccountId
  readonly userOpHash: Bytes32 | null
  readonly space: Space
  readonly nonceKey: bigint
  readonly sequence: bigint
  readonly returned: Hex | null
  /**
   * `accepted`: in no signed transaction that could still be mined. `sent`: in one, or handed to a bundler. `settled`:
   * the chain has its outcome. `abandoned`: given up, or replaced by another op with its nonce.
   */
  readonly state: "accepted" | "sent" | "settled" | "abandoned"
  /** The newest version of the transaction that carries it; after settlement the transaction that included it. */
  readonly txHash: Bytes32 | null
  readonly success: boolean | null
  readonly revertData: Hex | null
}

export interface RequestRecord {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly lane: Lane
  /** Null: sealed under another key. */
  readonly body: string | null
  readonly idempotency: Idempotency | null
  /** Number of operations or accounts in the request. */
  readonly elements: number
  /** Unix milliseconds. */
  readonly acceptedAt: number
  readonly metadata: Metadata
  /** The latest op of each element that has one, by index. */
  readonly ops: ReadonlyArray<OpRecord>
  /** Every op that was ever in a signed transaction, in the order of acceptance: its bytes are public. */
  readonly signed: ReadonlyArray<OpRecord>
  readonly failed: ReadonlyArray<FailedElement>
  /** Its transactions that are or may be mined, by signing: one per nonce, the newest or mined version. */
  readonly txHashes: ReadonlyArray<Bytes32>
  /** See `Acceptance.previews`; null or absent also when sealed under another key. */
  readonly previews?: string | null
  /** See `Acceptance.policies`. */
  readonly policies?: ReadonlyArray<PolicyName>
  /** The last `RequestJournal.note`. */
  readonly note: string | null
  /** Its remaining work waits for this time of the chain's clock, Unix seconds; null: it does not wait. */
  readonly notBefore: number | null
  /** Its unsigned work was cancelled and will never be signed; null: not cancelled. */
  readonly cancelled: CancellationCode | null
  /** Reason why it waits for the operator, see `RecoveryJournal.hold`; null or absent: it does not. */
  readonly held?: string | null
  /** Stored by `answer` or `cancel`; null while the request is not final. */
  readonly outcome: string | null
}

/** State of a request's ops and their transactions: the part of its record that changes during the work. */
export interface RequestOps extends Pick<RequestRecord, "ops" | "signed" | "txHashes"> {
  /** A nonce of `txHashes` is `signed`: that version, another version or none may be mined. */
  readonly hasUnmined: boolean
}

/**
 * The requests that an event of the chain concerns, sorted. Their state has changed, by this call or by an earlier call
 * with the same facts (possibly another process's).
 */
export type Affected = ReadonlyArray<string>

/** Filter for an account's requests. An absent field matches any value. */
export interface ListQuestion {
  readonly state?: "pending" | "final" | undefined
  /** Accepted at `since` or later and before `until`; Unix milliseconds. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly wallet?: Address | undefined
  readonly member?: { readonly key: string; readonly value: string } | undefined
  /** Older than this entry: the next page. */
  readonly after?: ListPlace | undefined
  readonly limit: number
}

/** A request's position in the list. */
export type ListPlace = Pick<ListedRequest, "acceptedAt" | "number">

/** A page of requests, newest first. */
export interface RequestList {
  readonly requests: ReadonlyArray<ListedRequest>
  /**
   * Place where the search stopped before the limit; pass it as `after` to continue. Null: the limit is reached, or the
   * list has ended. Searches for a wallet and a member that many requests have separately run in parts.
   */
  readonly searched: ListPlace | null
}

/** An accepted request, without its body. */
export interface ListedRequest {
  /** Distinguishes requests accepted in the same millisecond. */
  readonly number: bigint
  readonly requestId: string
  readonly endpoint: string
  readonly chainId: bigint
  readonly state: "pending" | "final"
  /** Unix milliseconds. */
  readonly acceptedAt: number
  readonly metadata: Metadata
}
