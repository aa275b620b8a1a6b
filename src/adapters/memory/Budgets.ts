import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type Budget,
  Budgets,
  dayOf,
  type Hold,
  type Lack,
  lackOf,
  type Reservation
} from "../../application/ports/Budgets.js"

interface Row extends Hold {
  readonly day: number
  readonly settled: boolean
}

/** How many days what has ended is still known. */
const keptDays = 2

const budgetName = ({ accountId, chainId, name }: Budget): string =>
  JSON.stringify([accountId, `${chainId}`, name])
const dayName = (budget: Budget, day: number): string => `${day} ${budgetName(budget)}`

/** Budgets that end with the process. Long, since all methods read and write the same three maps. */
export const make: Effect.Effect<Context.Tag.Service<typeof Budgets>> = Effect.sync(() => {
  const rows = new Map<string, Row>()
  const booked = new Map<string, bigint>()
  const given = new Map<string, number>()
  const rowName = (budget: Budget, id: string) => `${id} ${budgetName(budget)}`
  const opName = (accountId: string, chainId: bigint, hash: string) => `${chainId} ${hash} ${accountId}`
  const isOpen = (row: Row, now: number) => !row.settled && (row.bound || row.expiresAt > now)

  /** Each method is one synchronous step at one time of the clock. */
  const step = <A>(run: (now: number) => A): Effect.Effect<A> => Effect.map(Clock.currentTimeMillis, run)

  const each = (chainId: bigint, id: string, change: (row: Row, key: string) => void) => {
    for (const [key, row] of rows)
      if (row.chainId === chainId && row.id === id && !row.settled) change(row, key)
  }

  const hold = (entry: Reservation, now: number): Lack | null => {
    const { daily, limit: _, maxOpen: __, wei, ...rest } = entry
    const budget = budgetName(entry)
    const key = rowName(entry, entry.id)
    const known = rows.get(key)
    if (known?.settled === true) return { budget: entry.name, reason: "ended", available: 0n }
    const own = known !== undefined && isOpen(known, now) ? known : null
    const day = own?.day ?? dayOf(now)
    const most = own !== null && own.wei > wei ? own.wei : wei
    const others = [...rows].flatMap(([other, row]) =>
      other !== key && budgetName(row) === budget && isOpen(row, now) ? [row] : []
    )
    const lack = lackOf(entry, most, day, others, daily ? (booked.get(dayName(entry, day)) ?? 0n) : 0n)
    if (lack !== null) return lack
    const { bound, landed } = own ?? { bound: false, landed: null }
    rows.set(key, { ...rest, wei: most, day, bound, landed, settled: false })
    return null
  }

  return {
    reserve: (entries) =>
      step((now) => {
        for (const [key, row] of rows) {
          const old = row.settled && row.day < dayOf(now) - keptDays
          if (old || (!row.settled && !isOpen(row, now))) rows.delete(key)
        }
        const before = new Map(rows)
        for (const entry of entries) {
          const lack = hold(entry, now)
          if (lack === null) continue
          rows.clear()
          for (const [key, row] of before) rows.set(key, row)
          return lack
        }
        return null
      }),
    bind: (chainId, id) =>
      step((now) => {
        let found = false
        each(chainId, id, (row, key) => {
          if (!isOpen(row, now)) return
          found = true
          rows.set(key, { ...row, bound: true })
        })
        return found
      }),
    release: (chainId, ids) =>
      step(() => {
        for (const id of ids)
          each(chainId, id, (row, key) => {
            if (!row.bound) rows.delete(key)
          })
      }),
    land: (chainId, id, wei) =>
      step(() => each(chainId, id, (row, key) => rows.set(key, { ...row, landed: wei }))),
    settle: (chainId, id, wei) =>
      step(() =>
        each(chainId, id, (row, key) => {
          const day = dayName(row, row.day)
          booked.set(day, (booked.get(day) ?? 0n) + (wei ?? row.landed ?? 0n))
          rows.set(key, { ...row, settled: true })
        })
      ),
    open: (chainId) =>
      step((now) =>
        [...rows.values()].flatMap((row) => {
          const { day: _, settled: __, ...found } = row
          return row.chainId === chainId && isOpen(row, now) ? [found] : []
        })
      ),
    figures: (budget, at) =>
      step((now) => ({
        booked: booked.get(dayName(budget, dayOf(at))) ?? 0n,
        held: [...rows.values()]
          .filter(
            (row) => budgetName(row) === budgetName(budget) && row.day === dayOf(at) && isOpen(row, now)
          )
          .reduce((sum, { landed, wei }) => sum + (landed ?? wei), 0n)
      })),
    handOut: (accountId, chainId, userOpHash, until) =>
      step((now) => {
        for (const [key, end] of given) if (end * 1_000 < now) given.delete(key)
        given.set(opName(accountId, chainId, userOpHash), until)
      }),
    handedOut: (accountId, chainId, userOpHash) =>
      step((now) => (given.get(opName(accountId, chainId, userOpHash)) ?? -1) * 1_000 >= now)
  }
})

export const layer: Layer.Layer<Budgets> = Layer.effect(Budgets, make)
