import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import type * as WalletCalls from "../../../domain/wallet/WalletCalls.js"

/**
 * Whether what the chain shows, and the journal does not know, is accepted work: a database that was restored from a backup has
 * forgotten what it did since. Pure.
 */

/** An element of an accepted request of which the journal knows nothing on its way. */
export interface Wanted<Id> {
  readonly id: Id
  readonly wallet: Address
  /** What the wallet shall call; null: nothing, its op creates it. */
  readonly call: WalletCalls.Call | null
  /** The op nonce that the element owns in the journal; null: none, or that was given up. */
  readonly nonce: bigint | null
  /** Holds its request's ops to each other; null: nothing does. */
  readonly ledger: Address | null
  /** What was on the chain before is none of it, Unix milliseconds. */
  readonly since: number
}

/** An op on the chain that is none of the journal's. */
export interface Stray<Id> {
  readonly id: Id
  readonly sender: Address
  readonly nonce: bigint
  /** Null: the transaction that carries it cannot be read. */
  readonly callData: Hex.Hex | null
  /** The time of its block, Unix milliseconds. */
  readonly at: number
}

/** What keeps an element from going on. */
export interface Doubt<Id, S> {
  readonly wanted: Id
  readonly stray: S
  /** `unreadable`: what the stray does is not known; `otherNonce`: it does the same under another nonce. */
  readonly why: "unreadable" | "otherNonce"
}

export interface Matched<Id, S> {
  /** The stray is the element's op. */
  readonly adopted: ReadonlyArray<{ readonly wanted: Id; readonly stray: S }>
  readonly doubts: ReadonlyArray<Doubt<Id, S>>
}

/**
 * Strays of the same wallet and nonce that make the same call are the elements' own. Of the others those that make the same
 * call under another nonce, and those that cannot be read, may be: whoever goes on might do it twice.
 */
export const ops = <Id, S>(
  wanted: ReadonlyArray<Wanted<Id>>,
  strays: ReadonlyArray<Stray<S>>
): Matched<Id, S> => {
  const adopted: Array<{ readonly wanted: Id; readonly stray: S }> = []
  const doubts: Array<Doubt<Id, S>> = []
  const taken = new Set<S>()
  const left: Array<Wanted<Id>> = []
  for (const each of wanted) {
    const same = strays.find(
      ({ at, nonce, sender }) => sender === each.wallet && nonce === each.nonce && at >= each.since
    )
    if (same?.callData == null) {
      if (same !== undefined) doubts.push({ wanted: each.id, stray: same.id, why: "unreadable" })
      else left.push(each)
    } else if (Ledger.makes(same.callData, each.call, each.ledger)) {
      taken.add(same.id)
      adopted.push({ wanted: each.id, stray: same.id })
    } else left.push(each)
  }
  for (const each of left) {
    // A wallet is created once, under whatever nonce.
    if (each.call === null) continue
    const other = strays.find(
      ({ at, callData, id, nonce, sender }) =>
        sender === each.wallet &&
        nonce !== each.nonce &&
        at >= each.since &&
        !taken.has(id) &&
        (callData === null || Ledger.makes(callData, each.call, each.ledger))
    )
    if (other !== undefined)
      doubts.push({
        wanted: each.id,
        stray: other.id,
        why: other.callData === null ? "unreadable" : "otherNonce"
      })
  }
  return { adopted, doubts }
}

/** What a transaction of an EOA itself does. */
export interface Payload {
  /** Null: it creates a contract. */
  readonly to: Address | null
  readonly value: bigint
  readonly data: Hex.Hex
}

/** Each transaction is at most one request's, the oldest that wants the same; both in their order. */
export const directs = <W extends Payload, T extends Payload>(
  wanted: ReadonlyArray<W>,
  transactions: ReadonlyArray<T>
): ReadonlyArray<{ readonly wanted: W; readonly transaction: T }> => {
  const left = [...wanted]
  return transactions.flatMap((transaction) => {
    const at = left.findIndex(
      ({ data, to, value }) =>
        to === transaction.to && value === transaction.value && data === transaction.data
    )
    const [found] = at < 0 ? [] : left.splice(at, 1)
    return found === undefined ? [] : [{ wanted: found, transaction }]
  })
}
