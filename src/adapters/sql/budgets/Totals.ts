import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type Budget, dayOf, type Figures, hourOf, type Window } from "../../../application/ports/Budgets.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import * as Rows from "../Rows.js"

/**
 * Running totals of a budget: of its open reservations, and of those made in each hour and day. A reservation reads and
 * writes a bounded number of rows, however many are open. Totals change with their reservations, in one transaction.
 */

/** Empty: the operator's. */
export const accountOf = (stored: string): AccountId | null => (stored === "" ? null : (stored as AccountId))

export const columns = ({ accountId, chainId, name }: Budget) => ({
  account_id: accountId ?? "",
  chain_id: chainId.toString(),
  pot: name
})

export const nameOf = (budget: Budget): string => `budget:${JSON.stringify(Object.values(columns(budget)))}`

/** The part of a hold that the totals of one budget count. */
export interface Counted {
  readonly day: number
  readonly hour: number
  readonly wei: bigint
  /** Null: the cost is unknown. */
  readonly landed: bigint | null
  readonly state: "reserved" | "bound" | "settled"
}

export type Place = Pick<Counted, "day" | "hour">

type Unit = "open" | "day" | "hour"

interface Total {
  readonly unit: Unit
  readonly at: number
  held: bigint
  /** Of `open`: how many. */
  holds: number
  booked: bigint
  isChanged: boolean
  isBooked: boolean
}

/** Totals of a budget as they were read, and as a method changes them. */
export interface Totals {
  readonly budget: Budget
  readonly all: Map<string, Total>
}

/** Totals of a budget that holds nothing. */
export const none = (budget: Budget): Totals => ({ budget, all: new Map() })

const totalOf = ({ all }: Totals, unit: Unit, at: number): Total => {
  const name = `${unit} ${at}`
  const total = all.get(name) ?? {
    unit,
    at,
    held: 0n,
    holds: 0,
    booked: 0n,
    isChanged: false,
    isBooked: false
  }
  all.set(name, total)
  return total
}

/** Wei that a reservation holds. */
export const weiOf = (held: Counted | null): bigint =>
  held === null || held.state === "settled" ? 0n : (held.landed ?? held.wei)

const isOpen = (held: Counted | null): boolean =>
  held !== null && held.state !== "settled" && held.landed === null

/** Counts a reservation as it is after a change; null: not at all. */
export const shift = (totals: Totals, before: Counted | null, after: Counted | null): void => {
  const place = after ?? before
  if (place === null) return
  const change = (unit: Unit, at: number, wei: bigint, holds: number) => {
    if (wei === 0n && holds === 0) return
    const total = totalOf(totals, unit, at)
    total.held += wei
    total.holds += holds
    total.isChanged = true
  }
  const openWei = (held: Counted | null) => (isOpen(held) ? weiOf(held) : 0n)
  change("open", 0, openWei(after) - openWei(before), Number(isOpen(after)) - Number(isOpen(before)))
  const wei = weiOf(after) - weiOf(before)
  change("day", place.day, wei, 0)
  change("hour", place.hour, wei, 0)
}

/** Books what a reservation of that day and hour has cost. */
export const book = (totals: Totals, { day, hour }: Place, wei: bigint): void => {
  for (const total of [totalOf(totals, "day", day), totalOf(totals, "hour", hour)]) {
    total.booked += wei
    total.isChanged = true
    total.isBooked = true
  }
}

/** Unit of each window, and the number of units before the last one. */
const reaches = { day: ["day", 0], "24h": ["hour", 24], "30d": ["day", 30] } as const

/** Units for which totals are kept: windows around a reservation that is raised days later need them. */
const kept = { hour: 8 * 24, day: 62 }

const spanOf = (window: Exclude<Window, "open">, { day, hour }: Place) => {
  const [unit, reach] = reaches[window]
  return { unit, reach, own: unit === "day" ? day : hour }
}

/** Amounts that a window counts which ends there. */
export const figuresAt = (totals: Totals, window: Window, place: Place): Figures => {
  if (window === "open") return { held: totalOf(totals, "open", 0).held, booked: 0n }
  const { own, reach, unit } = spanOf(window, place)
  const sum = { held: 0n, booked: 0n }
  for (let at = own - reach; at <= own; at++) {
    const total = totals.all.get(`${unit} ${at}`)
    sum.held += total?.held ?? 0n
    sum.booked += total?.booked ?? 0n
  }
  return sum
}

/** Amount of the fullest window that counts a reservation of that place: those that end there or later, wei. */
export const fullest = (totals: Totals, window: Window, place: Place): bigint => {
  const sumOf = ({ booked, held }: Figures) => booked + held
  const least = sumOf(figuresAt(totals, window, place))
  if (window === "open") return least
  const { own, reach, unit } = spanOf(window, place)
  return [...totals.all.values()]
    .filter((each) => each.unit === unit && each.at > own && each.at <= own + reach)
    .map(({ at }) => sumOf(figuresAt(totals, window, { day: at, hour: at })))
    .reduce(BigInts.max, least)
}

/** Number of open reservations without a landed sum. */
export const holdsOf = (totals: Totals): number => totalOf(totals, "open", 0).holds

type Sql = { readonly sql: SqlClient.SqlClient }

const keyOf = (budget: Budget): ReadonlyArray<string> => {
  const { account_id, chain_id, pot } = columns(budget)
  return [chain_id, pot, account_id]
}

const keyColumns: Rows.Columns = { chain_id: "text", pot: "text", account_id: "text" }

/** Condition: the row is of one of the budgets. The parameter is `keysOf` of them. */
const ofBudgets = (store: Sql): string => `(chain_id, pot, account_id) in (${Rows.list(store, keyColumns)})`

const keysOf = (budgets: ReadonlyArray<Budget>): string => Rows.listing(keyColumns, budgets.map(keyOf))

interface Stored {
  readonly account_id: string
  readonly chain_id: string
  readonly pot: string
  readonly unit: Unit | "booked"
  readonly at: number | string
  readonly held: string
  readonly holds: number | string
  readonly booked: string
}

/** The least and the greatest of them, with so many before and after; of none: an empty range. */
const rangeOf = (values: ReadonlyArray<number>, reach: number): readonly [first: number, last: number] => {
  const [first] = values
  if (first === undefined) return [1, 0]
  const bound = (pick: (one: number, other: number) => number) => values.reduce((a, b) => pick(a, b), first)
  return [bound(Math.min) - reach, bound(Math.max) + reach]
}

const budgetOf = ({
  account_id,
  chain_id,
  pot
}: Pick<Stored, "account_id" | "chain_id" | "pot">): Budget => ({
  accountId: accountOf(account_id),
  chainId: BigInt(chain_id),
  name: pot
})

/**
 * Reads the totals of each budget, by `nameOf`: those in which rows of these days and hours are counted, and those of the
 * windows around them.
 */
export const read = (
  store: Sql,
  budgets: ReadonlyArray<Budget>,
  rows: ReadonlyArray<Place>,
  windows: ReadonlyArray<Window>
): Effect.Effect<ReadonlyMap<string, Totals>, SqlError> =>
  Effect.gen(function* () {
    const days = rangeOf(
      rows.map(({ day }) => day),
      windows.includes("30d") ? 30 : 0
    )
    const hours = rangeOf(
      rows.map(({ hour }) => hour),
      windows.includes("24h") ? 24 : 0
    )
    const keys = keysOf(budgets)
    const stored = yield* Rows.statement<Stored>(
      store,
      `select account_id, chain_id, pot, unit, at, held, holds, booked from budget_totals
       where ${ofBudgets(store)} and (unit = 'open' or (unit = 'day' and at between ? and ?)
         or (unit = 'hour' and at between ? and ?))
       union all
       select account_id, chain_id, pot, 'booked', day, '0', 0, booked from budget_days
       where ${ofBudgets(store)} and day between ? and ?`,
      [keys, ...days, ...hours, keys, ...days]
    )
    const read = new Map<string, Totals>()
    const byName = Map.groupBy(stored, (row) => nameOf(budgetOf(row)))
    for (const budget of budgets) {
      const name = nameOf(budget)
      const totals = none(budget)
      for (const { at, booked, held, holds, unit } of byName.get(name) ?? []) {
        const total = totalOf(totals, unit === "booked" ? "day" : unit, Number(at))
        if (unit !== "day") total.booked = BigInt(booked)
        if (unit === "booked") continue
        total.held = BigInt(held)
        total.holds = Number(holds)
      }
      read.set(name, totals)
    }
    return read
  })

const totalColumns: Rows.Columns = {
  account_id: "text",
  chain_id: "text",
  pot: "text",
  unit: "text",
  at: "bigint",
  held: "text",
  holds: "bigint",
  booked: "text"
}

const dayColumns: Rows.Columns = {
  account_id: "text",
  chain_id: "text",
  pot: "text",
  day: "integer",
  booked: "text"
}

/** Writes what was changed. The sums booked by day are the operator's books. */
export const write = (store: Sql, changed: ReadonlyArray<Totals>): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const rows: Array<ReadonlyArray<unknown>> = []
    const days: Array<ReadonlyArray<unknown>> = []
    for (const { all, budget } of changed) {
      const { account_id, chain_id, pot } = columns(budget)
      const own = [account_id, chain_id, pot]
      for (const total of all.values()) {
        if (!total.isChanged) continue
        const { at, booked, held, holds, isBooked, unit } = total
        const isDay = unit === "day"
        rows.push([...own, unit, at, held.toString(), holds, isDay ? "0" : booked.toString()])
        if (isDay && isBooked) days.push([...own, at, booked.toString()])
        total.isChanged = false
      }
    }
    yield* Rows.each(
      store,
      `insert into budget_totals (account_id, chain_id, pot, unit, at, held, holds, booked)
       select * from (%) as given where true
       on conflict (account_id, chain_id, pot, unit, at) do update set
         held = excluded.held, holds = excluded.holds, booked = excluded.booked`,
      totalColumns,
      rows
    )
    yield* Rows.each(
      store,
      `insert into budget_days (account_id, chain_id, pot, day, booked)
       select * from (%) as given where true
       on conflict (account_id, chain_id, pot, day) do update set booked = excluded.booked`,
      dayColumns,
      days
    )
  })

/** Deletes totals that no window reads any more. */
export const forget = ({ sql }: Sql, now: number): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    yield* sql`
      delete from budget_totals where unit = 'hour' and at < ${hourOf(now) - kept.hour} and held = '0'`
    yield* sql`
      delete from budget_totals where unit = 'day' and at < ${dayOf(now) - kept.day} and held = '0'`
  })
