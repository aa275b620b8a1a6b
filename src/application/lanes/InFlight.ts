import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import {
  type Lane,
  type LaneKey,
  laneKey,
  type Route,
  type TransactionRecord
} from "../ports/journal/Transactions.js"

/** Route of a transaction; all its ops have one EntryPoint. */
export const routeOf = ({ direct, ops }: Pick<TransactionRecord, "direct" | "ops">): Route =>
  ops[0]?.entryPoint ?? (direct === null ? null : "direct")

/** Signed transactions of each lane that are not mined, as watched by this process. */
export interface InFlight {
  readonly add: (record: TransactionRecord) => void
  readonly remove: (record: TransactionRecord) => void
  readonly count: (lane: Lane) => number
  readonly total: () => number
  /** Notes that a transaction about to be watched only creates wallets. */
  readonly noteCreation: (transaction: Lane & { readonly nonce: bigint }) => void
  /**
   * Whether ops in flight call contracts. Such an op may deploy a wallet whose creation follows: the bundle with the creation
   * would revert at the EOA's expense.
   */
  readonly isCalling: (lane: Lane) => boolean
  /** The lane's transactions, unordered. */
  readonly signed: (lane: Lane) => ReadonlyArray<TransactionRecord>
  readonly wake: (lane: Lane) => void
  /** Waits until a transaction of the lane is added or removed, or `wake` is called. */
  readonly changed: (lane: Lane) => Effect.Effect<void>
}

/** Nonce distance after which creations are forgotten: more than can be in flight. */
const mostNoted = 1_024n

export const make = (): InFlight => {
  const records = new Map<LaneKey, Map<bigint, TransactionRecord>>()
  const creations = new Map<LaneKey, Set<bigint>>()
  const bells = new Map<LaneKey, Deferred.Deferred<void>>()

  const signed = (lane: Lane) => [...(records.get(laneKey(lane))?.values() ?? [])]

  const wake = (lane: Lane): void => {
    const bell = bells.get(laneKey(lane))
    bells.delete(laneKey(lane))
    if (bell !== undefined) Deferred.doneUnsafe(bell, Effect.void)
  }

  return {
    add: (record) => {
      const name = laneKey(record)
      records.set(name, (records.get(name) ?? new Map()).set(record.nonce, record))
      wake(record)
    },
    remove: (record) => {
      const own = records.get(laneKey(record))
      own?.delete(record.nonce)
      if (own?.size === 0) records.delete(laneKey(record))
      wake(record)
    },
    noteCreation: (transaction) => {
      const own = creations.get(laneKey(transaction)) ?? new Set()
      creations.set(laneKey(transaction), own.add(transaction.nonce))
      for (const nonce of own) if (nonce + mostNoted < transaction.nonce) own.delete(nonce)
    },
    isCalling: (lane) =>
      signed(lane).some(
        ({ nonce, ops }) => ops.length > 0 && creations.get(laneKey(lane))?.has(nonce) !== true
      ),
    count: (lane) => records.get(laneKey(lane))?.size ?? 0,
    total: () => [...records.values()].reduce((sum, own) => sum + own.size, 0),
    signed,
    wake,
    changed: (lane) => {
      const bell = bells.get(laneKey(lane)) ?? Deferred.makeUnsafe<void>()
      bells.set(laneKey(lane), bell)
      return Deferred.await(bell)
    }
  }
}
