import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
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
  readonly count: (lane: Lane) => number
  /** Of all lanes. */
  readonly total: () => number
  /** Whether a transaction of this route may go beside all of them. */
  readonly admits: (lane: Lane, route: Route) => boolean
  /** Wakes everybody who waits for the lane. */
  readonly wake: (lane: Lane) => void
  /** Waits until one of the lane's transactions is added or removed, or it is woken, from this call on. */
  readonly changed: (lane: Lane) => Effect.Effect<void>
}

export const make = (): InFlight => {
  const lanes = new Map<string, Map<Route, number>>()
  const bells = new Map<string, Deferred.Deferred<void>>()

  const nameOf = ({ chainId, signer }: Lane): string => `${chainId}:${signer}`

  const wake = (lane: Lane): void => {
    const bell = bells.get(nameOf(lane))
    bells.delete(nameOf(lane))
    if (bell !== undefined) Deferred.unsafeDone(bell, Effect.void)
  }

  const change = (record: TransactionRecord, by: 1 | -1): void => {
    const name = nameOf(record)
    const routes = lanes.get(name) ?? new Map<Route, number>()
    const left = (routes.get(routeOf(record)) ?? 0) + by
    if (left > 0) routes.set(routeOf(record), left)
    else routes.delete(routeOf(record))
    if (routes.size > 0) lanes.set(name, routes)
    else lanes.delete(name)
    wake(record)
  }

  return {
    add: (record) => change(record, 1),
    remove: (record) => change(record, -1),
    count: (lane) => [...(lanes.get(nameOf(lane))?.values() ?? [])].reduce((sum, each) => sum + each, 0),
    total: () =>
      [...lanes.values()].flatMap((routes) => [...routes.values()]).reduce((sum, each) => sum + each, 0),
    admits: (lane, route) =>
      [...(lanes.get(nameOf(lane))?.keys() ?? [])].every((other) => goTogether(route, other)),
    wake,
    changed: (lane) => {
      const bell = bells.get(nameOf(lane)) ?? Deferred.unsafeMake<void>(FiberId.none)
      bells.set(nameOf(lane), bell)
      return Deferred.await(bell)
    }
  }
}
