import type { Address } from "../../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../../domain/primitives/Hex.js"

/**
 * Whether ops on the chain that the journal does not know are accepted work: a database that was restored from a backup has
 * forgotten what it did since. Pure.
 */

/** An element of an accepted request of which nothing is on its way. */
export interface Wanted {
  readonly requestId: string
  readonly index: number
  readonly wallet: Address
  /** The op nonce that the element owns; null: none yet. */
  readonly nonce: bigint | null
  /** It can be done once, under whatever nonce: the creation of a wallet. */
  readonly isOnce: boolean
  /** Whether an op's calldata do what the element asks for. */
  readonly makes: (callData: Hex) => boolean
}

/** An op on the chain that is none of the journal's. */
export interface Stray {
  readonly sender: Address
  readonly nonce: bigint
  readonly callData: Hex
  readonly txHash: Bytes32
}

/**
 * The elements whose calls strays have made under other nonces: whoever goes on might do it twice. A stray of an element's own
 * nonce that makes its call is that element's, and tells nothing of another one.
 */
export const doubts = (
  wanted: ReadonlyArray<Wanted>,
  strays: ReadonlyArray<Stray>
): ReadonlyArray<{ readonly wanted: Wanted; readonly stray: Stray }> => {
  const taken = new Set<Stray>()
  const left = wanted.filter(({ makes, nonce, wallet }) => {
    const own = strays.find(
      (stray) => stray.sender === wallet && stray.nonce === nonce && makes(stray.callData)
    )
    if (own !== undefined) taken.add(own)
    return own === undefined
  })
  return left.flatMap((each) => {
    const other = strays.find(
      (stray) =>
        !each.isOnce &&
        stray.sender === each.wallet &&
        stray.nonce !== each.nonce &&
        !taken.has(stray) &&
        each.makes(stray.callData)
    )
    return other === undefined ? [] : [{ wanted: each, stray: other }]
  })
}

/** What a transaction of an EOA itself does. */
export interface Payload {
  /** Null: it creates a contract. */
  readonly to: Address | null
  readonly value: bigint
  readonly data: Hex
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
