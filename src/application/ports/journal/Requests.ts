import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { OpRef } from "./OpRef.js"
import type { Depth, Lane } from "./Transactions.js"

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

/** The EntryPoint of direct transactions: there is none. The key of their nonces is the number of their request. */
export const direct = "direct"

/** Where the nonces of direct transactions live: the wallet is the signer. */
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
  /** Milliseconds after which an unused lease is free again, so that a crash strands nothing. */
  readonly ttlMillis: number
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

/** What a caller says of its request for itself: texts by keys that have no colon in them. */
export type Metadata = Readonly<Record<string, string>>

/** When an accepted request, of which nothing is on its way, is taken up. */
export interface Schedule {
  /** Unix seconds by the chain's clock: the first of its windows that have not begun begins after it. */
  readonly notBefore: number
  /** Unix milliseconds by the clock of the service: when the chain is looked at again. */
  readonly dueAt: number
}

/**
 * Why what was not signed of a request never will be: its caller, or the operator, said so; its time was over; or the operator
 * dropped it when it was held.
 */
export type CancellationCode = "request_cancelled" | "request_expired" | "request_dropped"

export interface Cancellation {
  readonly code: CancellationCode
  /** The final answer (JSON) of a request of which nothing was ever signed. */
  readonly outcome: string
  /** Only a request of which nothing was ever signed; another one stays as it is. */
  readonly onlyUnsigned: boolean
}

/** What the chain said of one op. */
export interface OpSettlement extends Depth {
  readonly userOpHash: Bytes32
  readonly success: boolean
  /** The transaction in which it landed. */
  readonly txHash: Bytes32
  /** What its call reverted with; null when it succeeded or gave no data. */
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
   * `accepted`: in no signed transaction that could still be mined; `sent`: in one, or handed to a bundler;
   * `settled`: the chain has its outcome; `abandoned`: given up, or replaced by another one with its nonce.
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
  readonly lane: Lane
  /** Null: it was sealed under another key. */
  readonly body: string | null
  readonly idempotency: Idempotency | null
  /** How many operations or accounts it is about. */
  readonly elements: number
  /** Unix milliseconds. */
  readonly acceptedAt: number
  readonly metadata: Metadata
  /** The latest op of each element that has one, by index. */
  readonly ops: ReadonlyArray<OpRecord>
  /** Every op of it that was ever in a signed transaction, in the order of acceptance: its bytes are public. */
  readonly signed: ReadonlyArray<OpRecord>
  readonly failed: ReadonlyArray<FailedElement>
  /** Hashes of its transactions that may be or are mined, one for each nonce (the newest version, or the mined one), in order of signing. */
  readonly txHashes: ReadonlyArray<Bytes32>
  /** What its endpoint has kept for itself at last. */
  readonly note: string | null
  /** What is left of it waits for this time of the chain's clock, Unix seconds; null: it does not. */
  readonly notBefore: number | null
  /** What was not signed when it was cancelled never will be; null: it was not cancelled. */
  readonly cancelled: CancellationCode | null
  /** Why it waits for the operator, see `RecoveryJournal.hold`; null, or absent: it does not. */
  readonly held?: string | null
  /** What `answer` or `cancel` stored; null while the request is not final. */
  readonly outcome: string | null
}

/** What became of a request's ops, and of the transactions that carry them: of a record what changes while it is worked on. */
export interface RequestOps extends Pick<RequestRecord, "ops" | "signed" | "txHashes"> {
  /** One of `txHashes` is of a nonce that is `signed`: that version or another one may be mined, or none ever. */
  readonly hasUnmined: boolean
}

/**
 * The requests that an event of the chain concerns, sorted: their state has changed, by this call or by an earlier one
 * that told the same (another process's perhaps).
 */
export type Affected = ReadonlyArray<string>

/** Which requests of an account to list. Absent: whatever it is. */
export interface ListQuestion {
  readonly state?: "pending" | "final" | undefined
  /** Accepted at this time or later, and before that one; Unix milliseconds. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** With an op of this wallet. */
  readonly wallet?: Address | undefined
  /** With this member of their metadata. */
  readonly member?: { readonly key: string; readonly value: string } | undefined
  /** Older than this entry: the next page. */
  readonly after?: ListPlace | undefined
  readonly limit: number
}

/** Where a request stands in the list. */
export type ListPlace = Pick<ListedRequest, "acceptedAt" | "number">

/** Some of the requests that are asked for, the newest first. */
export interface RequestList {
  readonly requests: ReadonlyArray<ListedRequest>
  /**
   * Where the search has ended, with fewer requests than the limit: it goes on after that. Null: the limit is reached, or
   * there are no others. A wallet and a member that many requests have, each for itself, are searched in parts.
   */
  readonly searched: ListPlace | null
}

/** An accepted request, without what it asked for. */
export interface ListedRequest {
  /** Tells apart requests that were accepted in the same millisecond. */
  readonly number: bigint
  readonly requestId: string
  readonly endpoint: string
  readonly chainId: bigint
  readonly state: "pending" | "final"
  /** Unix milliseconds. */
  readonly acceptedAt: number
  readonly metadata: Metadata
}
