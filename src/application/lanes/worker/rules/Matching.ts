import type { Address } from "../../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../../domain/primitives/Hex.js"

/**
 * Matches ops on the chain that the journal lacks with accepted work: a database restored from a backup lacks all later work.
 * Pure.
 */

/** An element of an accepted request without bytes in flight. */
export interface Wanted {
  readonly requestId: string
  readonly index: number
  readonly wallet: Address
  /** The element's op nonce; null: none yet. */
  readonly nonce: bigint | null
  /** It can happen only once, under any nonce: the creation of a wallet. */
  readonly isOnce: boolean
  /** Whether calldata of an op does the element's work. */
  readonly makes: (callData: Hex) => boolean
}

/** An op on the chain that the journal lacks. */
export interface Stray {
  readonly sender: Address
  readonly nonce: bigint
  readonly callData: Hex
  readonly txHash: Bytes32
}

/**
 * Elements whose calls strays made under other nonces: continuing might do them twice. A stray with an element's nonce and call
 * is that element, and says nothing about others.
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

/** Payload of an EOA's own transaction. */
export interface Payload {
  /** Null: it creates a contract. */
  readonly to: Address | null
  readonly value: bigint
  readonly data: Hex
}

/** Assigns each transaction to at most one request, the oldest with the same payload; both in their order. */
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
