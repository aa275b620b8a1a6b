import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Lane, Route, TransactionRecord } from "../ports/journal/Transactions.js"

/** The route of a transaction. Its ops are all of one EntryPoint. */
export const routeOf = ({ direct, ops }: Pick<TransactionRecord, "direct" | "ops">): Route =>
  ops[0]?.entryPoint ?? (direct === null ? null : "direct")

/** Whether a transaction of the one route may be in flight beside one of the other (see `Route`). */
export const goTogether = (one: Route, other: Route): boolean =>
  one === null || other === null || one === other

/** The transactions of each lane that are signed and not mined, as far as this process watches them. */
export interface InFlight {
  readonly add: (record: TransactionRecord) => void
  readonly remove: (record: TransactionRecord) => void
  /** What is known of its nonce is new: whoever waits for the lane sees it with the new record alone. */
  readonly renew: (before: TransactionRecord, after: TransactionRecord) => void
  readonly count: (lane: Lane) => number
  /** Of all lanes. */
  readonly total: () => number
  /** Whether a transaction of this route may go beside all of them. */
  readonly admits: (lane: Lane, route: Route) => boolean
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
  const lanes = new Map<string, Map<Route, number>>()
  /** By lane, the nonces whose transactions carry ops that call contracts, and those of which that is not so. */
  const calling = new Map<string, Set<bigint>>()
  const creations = new Map<string, Set<bigint>>()
  const bells = new Map<string, Deferred.Deferred<void>>()
  const records = new Map<string, Map<bigint, TransactionRecord>>()

  const nameOf = ({ chainId, signer }: Lane): string => `${chainId}:${signer}`

  const wake = (lane: Lane): void => {
    const bell = bells.get(nameOf(lane))
    bells.delete(nameOf(lane))
    if (bell !== undefined) Deferred.doneUnsafe(bell, Effect.void)
  }

  const noted = (table: Map<string, Set<bigint>>, { nonce, ...lane }: Lane & { readonly nonce: bigint }) => {
    const set = table.get(nameOf(lane)) ?? new Set<bigint>()
    table.set(nameOf(lane), set.add(nonce))
  }
  const forgotten = (table: Map<string, Set<bigint>>, record: TransactionRecord): void => {
    const set = table.get(nameOf(record))
    set?.delete(record.nonce)
    if (set?.size === 0) table.delete(nameOf(record))
  }

  const change = (record: TransactionRecord, by: 1 | -1): void => {
    const name = nameOf(record)
    const own = records.get(name) ?? new Map<bigint, TransactionRecord>()
    if (by === 1) records.set(name, own.set(record.nonce, record))
    else own.delete(record.nonce)
    if (own.size === 0) records.delete(name)
    if (by === -1) forgotten(calling, record)
    else if (record.ops.length > 0 && creations.get(name)?.has(record.nonce) !== true) noted(calling, record)
    const routes = lanes.get(name) ?? new Map<Route, number>()
    const left = (routes.get(routeOf(record)) ?? 0) + by
    if (left > 0) routes.set(routeOf(record), left)
    else routes.delete(routeOf(record))
    if (routes.size > 0) lanes.set(name, routes)
    else lanes.delete(name)
  }

  return {
    add: (record) => {
      change(record, 1)
      wake(record)
    },
    remove: (record) => {
      change(record, -1)
      wake(record)
    },
    renew: (before, after) => {
      change(before, -1)
      change(after, 1)
      wake(after)
    },
    noteCreation: (transaction) => {
      noted(creations, transaction)
      const set = creations.get(nameOf(transaction))
      // A record that is renewed is removed and added: what was noted of it stays.
      for (const nonce of set ?? []) if (nonce + mostNoted < transaction.nonce) set?.delete(nonce)
    },
    isCalling: (lane) => calling.has(nameOf(lane)),
    count: (lane) => [...(lanes.get(nameOf(lane))?.values() ?? [])].reduce((sum, each) => sum + each, 0),
    total: () =>
      [...lanes.values()].flatMap((routes) => [...routes.values()]).reduce((sum, each) => sum + each, 0),
    admits: (lane, route) =>
      [...(lanes.get(nameOf(lane))?.keys() ?? [])].every((other) => goTogether(route, other)),
    signed: (lane) => [...(records.get(nameOf(lane))?.values() ?? [])],
    wake,
    changed: (lane) => {
      const bell = bells.get(nameOf(lane)) ?? Deferred.makeUnsafe<void>()
      bells.set(nameOf(lane), bell)
      return Deferred.await(bell)
    }
  }
}
