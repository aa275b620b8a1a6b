import type { Block, ChainClient, Receipt } from "../../ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../ports/journal/Transactions.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import type { AccountId } from "../../ports/Tenants.js"
import type { Answer } from "./TransactionState.js"

/** A transaction whose bytes are stored. */
export interface Watched {
  /**
   * The node of the request that gives it: the first one that it is offered to. Left out, or null: the one that its access
   * names. What goes by the operator's node goes by the present one, whatever is named here.
   */
  readonly chain?: ChainClient | null
  readonly profile: NetworkProfile
  readonly record: TransactionRecord
}

/** One of the nodes that a lane's transactions go through. */
export interface LaneNode {
  readonly chain: ChainClient
  /** The account whose node it is; null: the operator's. */
  readonly account: AccountId | null
  /** It has answered, and serves the lane's chain. */
  isKnown: boolean
  /** It did not answer when it was last asked. */
  isSilent: boolean
  /** It is being asked. */
  isBusy: boolean
  /** Its latest block, when the last look asked for it. */
  head: Block | null
  /** What it told since the last round, by the entries that it was asked of. */
  answers: Map<Entry, Answer>
  /** Before that it is not asked for what another node is at home of, milliseconds. */
  restsUntil: number
}

/** When the newest bytes are given to a node again, milliseconds, and how long after that once more. */
export interface Offer {
  at: number
  delay: number
}

/** What the monitor remembers of one nonce, until it is settled. */
export interface Entry {
  readonly profile: NetworkProfile
  readonly record: TransactionRecord
  /** The node that it was given to first; null: none is there at present. */
  readonly home: LaneNode | null
  /** By node, those that the newest bytes were offered to. */
  readonly offers: Map<LaneNode, Offer>
  /** When its newest bytes came and were given to its home, milliseconds. */
  offeredAt: number
  /** From then on the lane's other nodes are asked and given the bytes too: its own may have lost them, or lie. */
  doubtAt: number
  /** When it has waited long enough for a look at what keeps it, milliseconds. */
  careAt: number
  /** From then on the height is wanted of which `since` tells. */
  sinceAt: number
  /** The height of a node soon after the newest version was offered: without newer blocks no price is raised. */
  since: { readonly node: LaneNode; readonly height: bigint } | null
  /** Block at which its receipt was last looked at, when it is mined already. */
  lookedAt: bigint
  /** The node that showed the receipt of a mined one. */
  readonly witness: LaneNode | null
  /** Since when a mined one is not to be seen any more. */
  missedSince: number | null
  /** A node took the newest version or one before it. */
  isTaken: boolean
  /** The journal was told that a node took it. */
  isTold: boolean
}

/** A node that has lost a transaction is given the same bytes again, this often at most. */
export const offerMillis = 10_000
/** After a refused offer it is sooner, and then twice as late each time. */
export const firstOfferMillis = 250
/** A node that took a transaction is trusted with it alone for so long. */
const doubtMillis = 4_000

/**
 * The entry of a transaction whose newest bytes its home has just taken, or not. `waited`: how long ago they were signed,
 * milliseconds. It is told by a clock that somebody may have set since, or by another machine's, and counts for nothing
 * below zero.
 */
export const make = (
  { profile, record }: Watched,
  home: LaneNode | null,
  { now, taken, waited }: { readonly now: number; readonly taken: boolean; readonly waited: number }
): Entry => ({
  profile,
  record,
  home,
  offers: new Map(
    home === null
      ? []
      : [[home, { at: now + (taken ? offerMillis : firstOfferMillis), delay: firstOfferMillis }]]
  ),
  offeredAt: now,
  doubtAt: taken ? now + doubtMillis : now,
  careAt: now + profile.bumpAfterMillis - Math.max(waited, 0),
  sinceAt: now + profile.bumpAfterMillis / 4,
  since: null,
  lookedAt: 0n,
  witness: null,
  missedSince: null,
  isTaken: taken,
  isTold: false
})

/** The entry of a transaction that was mined. */
export const mined = (entry: Entry, witness: LaneNode, receipt: Receipt): Entry => {
  const { blockHash, blockNumber, success, txHash } = receipt
  return {
    ...entry,
    record: { ...entry.record, state: "mined", mined: { blockHash, blockNumber, success, txHash } },
    lookedAt: blockNumber,
    witness,
    missedSince: null,
    isTold: true
  }
}

/** The entry of a transaction that was mined and is not any more: every node is given its bytes again. */
export const withdrawn = (entry: Entry, now: number): Entry => ({
  ...entry,
  record: { ...entry.record, state: "signed", mined: null },
  offers: new Map(),
  doubtAt: now,
  since: null,
  witness: null,
  missedSince: null
})

/** The node has the newest bytes. */
export const taken = (entry: Entry, node: LaneNode, now: number): void => {
  entry.offers.set(node, { at: now + offerMillis, delay: firstOfferMillis })
  entry.isTaken = true
}

/** The node did not take the newest bytes: the next look at it is later each time. */
export const putOff = ({ offers }: Entry, node: LaneNode, now: number): void => {
  const delay = Math.min((offers.get(node)?.delay ?? firstOfferMillis / 2) * 2, offerMillis)
  offers.set(node, { at: now + delay, delay })
}

/**
 * The transaction before it was seen on the chain. No node had this one meanwhile: of an EOA with delegated code (EIP-7702)
 * pools take one at a time. It goes now, and has waited for nothing yet that a price would help.
 */
export const follow = (entry: Entry, now: number): void => {
  const { bumpAfterMillis } = entry.profile
  for (const node of entry.offers.keys()) entry.offers.set(node, { at: now, delay: firstOfferMillis / 2 })
  entry.offeredAt = now
  entry.careAt = now + bumpAfterMillis
  entry.sinceAt = now + bumpAfterMillis / 4
  entry.since = null
}

/** A node took it, and the journal does not know. */
export const isUntold = ({ isTaken, isTold, record }: Entry): boolean =>
  isTaken && !isTold && record.state === "signed"

/** Its own node is not trusted with it alone any more. */
export const isDoubtful = ({ doubtAt, home }: Entry, now: number): boolean =>
  home === null || home.isSilent || now >= doubtAt

/** Nodes at which it is not at home are given it when its own is in doubt. */
export const isOfferDue = (entry: Entry, node: LaneNode, now: number): boolean => {
  const offer = entry.offers.get(node)
  return offer === undefined ? node === entry.home || isDoubtful(entry, now) : now >= offer.at
}

/** Whether the height of this node is wanted, to know later whether blocks have come. */
export const wantsHeight = ({ careAt, since, sinceAt }: Entry, node: LaneNode, now: number): boolean =>
  now >= careAt || (since?.node !== node && now >= sinceAt)

/** `height`: null when the node does not tell it; it is asked again later. */
export const noteHeight = (entry: Entry, node: LaneNode, height: bigint | null, now: number): void => {
  if (height === null) entry.sinceAt = Math.max(entry.sinceAt, now + 1_000)
  else if (entry.since?.node !== node) entry.since = { node, height }
}

/** What keeps it was looked at, whatever comes of it: the next look is a while off. */
export const caredFor = (entry: Entry, now: number): void => {
  if (now >= entry.careAt) entry.careAt = now + Math.max(entry.profile.bumpAfterMillis / 4, 1_000)
}

/** Whether the node has mined blocks since soon after the newest version was offered. */
export const hasNewBlocks = ({ since }: Entry, node: LaneNode, height: bigint): boolean =>
  since !== null && since.node === node && height > since.height

/** Whether it is time for a look at what keeps it waiting. */
export const isDue = (entry: Entry, nodes: ReadonlyArray<LaneNode>, now: number): boolean =>
  now >= entry.careAt ||
  (entry.since === null && now >= entry.sinceAt) ||
  nodes.some((node) => isOfferDue(entry, node, now))
