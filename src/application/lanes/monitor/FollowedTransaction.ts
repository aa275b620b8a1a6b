import type { Block, ChainClient, Receipt } from "../../ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../ports/journal/Transactions.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import type { AccountId } from "../../ports/Tenants.js"
import type { Answer } from "./TransactionState.js"

/**
 * Describes a transaction in the memory of `TransactionMonitor`: the nodes that have its bytes, and when to poll,
 * broadcast and check again. Its times are of `MonotonicTime`, so they mean nothing to another process.
 */

export interface Watched {
  /**
   * Node of the request; it gets the bytes first. Absent or null: the node that the access names. Under the operator's access
   * the operator's current node always applies.
   */
  readonly chain?: ChainClient | null
  readonly profile: NetworkProfile
  readonly record: TransactionRecord
}

/** A node that a lane's transactions go through. */
export interface LaneNode {
  readonly chain: ChainClient
  /** Account that owns the node; null: the operator's. */
  readonly account: AccountId | null
  /** It replied, and serves the lane's chain. */
  isKnown: boolean
  /** It did not reply to the last poll. */
  isSilent: boolean
  isBusy: boolean
  /** Its latest block, if the last poll requested it. */
  head: Block | null
  /** Its replies since the last round, by entry. */
  answers: Map<FollowedTransaction, Answer>
  /** Earliest poll for transactions whose home is another node, milliseconds. */
  restsUntil: number
}

/** Time of the next broadcast of the newest bytes to a node, and the delay of the broadcast after it, milliseconds. */
export interface Broadcast {
  at: number
  delay: number
}

export interface FollowedTransaction {
  readonly profile: NetworkProfile
  readonly record: TransactionRecord
  /** Node that got the bytes first; null: none is available. */
  readonly home: LaneNode | null
  /** Nodes to which the newest bytes were broadcast. */
  readonly broadcasts: Map<LaneNode, Broadcast>
  /** Time at which the newest bytes arrived and were broadcast to the home node, milliseconds. */
  broadcastAt: number
  /** From then on other nodes of the lane are polled and get the bytes too: the home node may have lost them, or lie. */
  doubtAt: number
  /** Time of the next check for the cause of its delay, milliseconds. */
  checkAt: number
  /** From then on `since` is needed, milliseconds. */
  sinceAt: number
  /** A node's height soon after the newest version was broadcast: prices are raised only after newer blocks. */
  since: { readonly node: LaneNode; readonly height: bigint } | null
  /** Block of the last receipt check, once mined. */
  checkedBlock: bigint
  /** Node that showed the receipt of the mined transaction. */
  readonly witness: LaneNode | null
  /** Time at which the mined transaction was first missed. */
  missedSince: number | null
  /** A node accepted the newest version or an earlier one. */
  isAccepted: boolean
  /** The journal knows that a node accepted it. */
  isRecorded: boolean
}

/** Minimum interval between broadcasts of the same bytes to a node that lost them, milliseconds. */
export const broadcastMillis = 10_000
/** First delay after a refused broadcast, milliseconds; doubles each time. */
export const firstBroadcastMillis = 250
/** Time for which only the node that took the transaction is trusted with it, milliseconds. */
const doubtMillis = 4_000

/**
 * Entry of a transaction after the broadcast to its home node. `waited`: time since it was signed, milliseconds. The clock may have
 * been set, or differ from another machine's, so a negative value counts as zero.
 */
export const make = (
  { profile, record }: Watched,
  home: LaneNode | null,
  { now, taken, waited }: { readonly now: number; readonly taken: boolean; readonly waited: number }
): FollowedTransaction => ({
  profile,
  record,
  home,
  broadcasts: new Map(
    home === null
      ? []
      : [[home, { at: now + (taken ? broadcastMillis : firstBroadcastMillis), delay: firstBroadcastMillis }]]
  ),
  broadcastAt: now,
  doubtAt: taken ? now + doubtMillis : now,
  checkAt: now + profile.bumpAfterMillis - Math.max(waited, 0),
  sinceAt: now + profile.bumpAfterMillis / 4,
  since: null,
  checkedBlock: 0n,
  witness: null,
  missedSince: null,
  isAccepted: taken,
  isRecorded: false
})

export const mine = (
  entry: FollowedTransaction,
  witness: LaneNode,
  receipt: Receipt
): FollowedTransaction => {
  const { blockHash, blockNumber, success, txHash } = receipt
  return {
    ...entry,
    record: { ...entry.record, state: "mined", mined: { blockHash, blockNumber, success, txHash } },
    checkedBlock: blockNumber,
    witness,
    missedSince: null,
    isRecorded: true
  }
}

/** Entry of a transaction that left the chain: its bytes go to every node again. */
export const withdraw = (entry: FollowedTransaction, now: number): FollowedTransaction => ({
  ...entry,
  record: { ...entry.record, state: "signed", mined: null },
  broadcasts: new Map(),
  doubtAt: now,
  since: null,
  witness: null,
  missedSince: null
})

/** The node has the newest bytes. */
export const accept = (entry: FollowedTransaction, node: LaneNode, now: number): void => {
  entry.broadcasts.set(node, { at: now + broadcastMillis, delay: firstBroadcastMillis })
  entry.isAccepted = true
}

/** The node refused the newest bytes: delays the next broadcast, longer each time. */
export const delayBroadcast = ({ broadcasts }: FollowedTransaction, node: LaneNode, now: number): void => {
  const delay = Math.min((broadcasts.get(node)?.delay ?? firstBroadcastMillis / 2) * 2, broadcastMillis)
  broadcasts.set(node, { at: now + delay, delay })
}

/**
 * The preceding transaction was seen on the chain. Pools take one transaction at a time from an EOA with delegated code
 * (EIP-7702), so no node had this one: it is broadcast now, and its price timers restart.
 */
export const follow = (entry: FollowedTransaction, now: number): void => {
  const { bumpAfterMillis } = entry.profile
  for (const node of entry.broadcasts.keys())
    entry.broadcasts.set(node, { at: now, delay: firstBroadcastMillis / 2 })
  entry.broadcastAt = now
  entry.checkAt = now + bumpAfterMillis
  entry.sinceAt = now + bumpAfterMillis / 4
  entry.since = null
}

/** A node took it, and the journal does not know. */
export const isUnrecorded = ({ isAccepted, isRecorded, record }: FollowedTransaction): boolean =>
  isAccepted && !isRecorded && record.state === "signed"

/** Whether its home node is no longer trusted without other nodes. */
export const isDoubtful = ({ doubtAt, home }: FollowedTransaction, now: number): boolean =>
  home === null || home.isSilent || now >= doubtAt

/** Other nodes get it once its home node is in doubt. */
export const isBroadcastDue = (entry: FollowedTransaction, node: LaneNode, now: number): boolean => {
  const broadcast = entry.broadcasts.get(node)
  return broadcast === undefined ? node === entry.home || isDoubtful(entry, now) : now >= broadcast.at
}

/** Whether this node's height is needed to detect new blocks later. */
export const wantsHeight = (
  { checkAt, since, sinceAt }: FollowedTransaction,
  node: LaneNode,
  now: number
): boolean => now >= checkAt || (since?.node !== node && now >= sinceAt)

/** `height`: null if the node did not return it; it is requested again later. */
export const noteHeight = (
  entry: FollowedTransaction,
  node: LaneNode,
  height: bigint | null,
  now: number
): void => {
  if (height === null) entry.sinceAt = Math.max(entry.sinceAt, now + 1_000)
  else if (entry.since?.node !== node) entry.since = { node, height }
}

/** Schedules the next check after a check, whatever its result. */
export const scheduleCheck = (entry: FollowedTransaction, now: number): void => {
  if (now >= entry.checkAt) entry.checkAt = now + Math.max(entry.profile.bumpAfterMillis / 4, 1_000)
}

export const hasNewBlocks = ({ since }: FollowedTransaction, node: LaneNode, height: bigint): boolean =>
  since !== null && since.node === node && height > since.height

export const isDue = (entry: FollowedTransaction, nodes: ReadonlyArray<LaneNode>, now: number): boolean =>
  now >= entry.checkAt ||
  (entry.since === null && now >= entry.sinceAt) ||
  nodes.some((node) => isBroadcastDue(entry, node, now))
