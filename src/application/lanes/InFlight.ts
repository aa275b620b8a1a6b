import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Lane, Route, TransactionRecord } from "../ports/journal/Transactions.js"

/** Tells lanes apart. */
export const nameOf = ({ chainId, signer }: Lane): string => `${chainId}:${signer}`

/** The route of a transaction. Its ops are all of one EntryPoint. */
export const routeOf = ({ direct, ops }: Pick<TransactionRecord, "direct" | "ops">): Route =>
  ops[0]?.entryPoint ?? (direct === null ? null : "direct")

/** The transactions of each lane that are signed and not mined, as far as this process watches them. */
export interface InFlight {
  readonly add: (record: TransactionRecord) => void
  readonly remove: (record: TransactionRecord) => void
  readonly count: (lane: Lane) => number
  /** Of all lanes. */
  readonly total: () => number
  /** A transaction that is about to be watched does nothing but create wallets. */
  readonly noteCreation: (transaction: Lane & { readonly nonce: bigint }) => void
  /**
   * Whether ops are on their way that call contracts. Any of them may deploy a wallet whose creation goes behind it: the
   * bundle with the creation would revert, at the expense of the EOA.
   */
  readonly isCalling: (lane: Lane) => boolean
  /** Those of the lane, in no order. */
  readonly signed: (lane: Lane) => ReadonlyArray<TransactionRecord>
  /** Wakes everybody who waits for the lane. */
  readonly wake: (lane: Lane) => void
  /** Waits until one of the lane's transactions is added or removed, or it is woken, from this call on. */
  readonly changed: (lane: Lane) => Effect.Effect<void>
}

/** Nonces below the newest of a creation of which it is remembered: more than may be on their way. */
const mostNoted = 1_024n

export const make = (): InFlight => {
  const records = new Map<string, Map<bigint, TransactionRecord>>()
  const creations = new Map<string, Set<bigint>>()
  const bells = new Map<string, Deferred.Deferred<void>>()

  const signed = (lane: Lane) => [...(records.get(nameOf(lane))?.values() ?? [])]

  const wake = (lane: Lane): void => {
    const bell = bells.get(nameOf(lane))
    bells.delete(nameOf(lane))
    if (bell !== undefined) Deferred.doneUnsafe(bell, Effect.void)
  }

  return {
    add: (record) => {
      const name = nameOf(record)
      records.set(name, (records.get(name) ?? new Map()).set(record.nonce, record))
      wake(record)
    },
    remove: (record) => {
      const own = records.get(nameOf(record))
      own?.delete(record.nonce)
      if (own?.size === 0) records.delete(nameOf(record))
      wake(record)
    },
    noteCreation: (transaction) => {
      const own = creations.get(nameOf(transaction)) ?? new Set()
      creations.set(nameOf(transaction), own.add(transaction.nonce))
      for (const nonce of own) if (nonce + mostNoted < transaction.nonce) own.delete(nonce)
    },
    isCalling: (lane) =>
      signed(lane).some(
        ({ nonce, ops }) => ops.length > 0 && creations.get(nameOf(lane))?.has(nonce) !== true
      ),
    count: (lane) => records.get(nameOf(lane))?.size ?? 0,
    total: () => [...records.values()].reduce((sum, own) => sum + own.size, 0),
    signed,
    wake,
    changed: (lane) => {
      const bell = bells.get(nameOf(lane)) ?? Deferred.makeUnsafe<void>()
      bells.set(nameOf(lane), bell)
      return Deferred.await(bell)
    }
  }
}
