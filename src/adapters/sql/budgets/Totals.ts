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

/** Names the budget in this process. */
export const keyOf = ({ accountId, chainId, name }: Budget): string =>
  `${chainId}\n${accountId ?? ""}\n${name}`

/** Names the budget's lock. */
export const lockOf = (budget: Budget): string => `budget:${JSON.stringify(Object.values(columns(budget)))}`

/** The day and the hour in which a reservation counts. */
export interface Place {
  readonly day: number
  readonly hour: number
}

/** Amounts that a reservation counts: wei in windows of time; wei and a number of holds in the window `open`. */
export interface Count {
  readonly wei: bigint
  readonly open: bigint
  readonly holds: number
}

export const nothing: Count = { wei: 0n, open: 0n, holds: 0 }

type Unit = "open" | "day" | "hour"

interface Total {
  held: bigint
  /** Of `open`: how many. */
  holds: number
  booked: bigint
  isChanged: boolean
  isBooked: boolean
}

/** A sum of the totals of a unit, in whatever hours or days of the range. */
interface Sum {
  readonly unit: Unit
  readonly from: number
  readonly to: number
  wei: bigint
}

/** Totals of a budget as they were read, and as a method changes them. */
export interface Totals {
  readonly budget: Budget
  readonly of: Readonly<Record<Unit, Map<number, Total>>>
  /** Sums that are known: each change counts there, too. */
  readonly sums: Array<Sum>
}

/** By `keyOf`. */
export type All = ReadonlyMap<string, Totals>

/** Totals of a budget that holds nothing. */
export const none = (budget: Budget): Totals => ({
  budget,
  of: { open: new Map(), day: new Map(), hour: new Map() },
  sums: []
})

const totalOf = ({ of }: Totals, unit: Unit, at: number): Total => {
  const known = of[unit].get(at)
  if (known !== undefined) return known
  const total = { held: 0n, holds: 0, booked: 0n, isChanged: false, isBooked: false }
  of[unit].set(at, total)
  return total
}

const change = (totals: Totals, unit: Unit, at: number, held: bigint, booked: bigint): Total => {
  const total = totalOf(totals, unit, at)
  total.held += held
  total.booked += booked
  total.isChanged = true
  for (const sum of totals.sums)
    if (sum.unit === unit && at >= sum.from && at <= sum.to) sum.wei += held + booked
  return total
}

/** Counts a reservation of that day and hour as it is after a change. */
export const shift = (totals: Totals, { day, hour }: Place, before: Count, after: Count): void => {
  if (after.open !== before.open || after.holds !== before.holds)
    change(totals, "open", 0, after.open - before.open, 0n).holds += after.holds - before.holds
  const wei = after.wei - before.wei
  if (wei === 0n) return
  change(totals, "day", day, wei, 0n)
  change(totals, "hour", hour, wei, 0n)
}

/** Books what a reservation of that day and hour has cost. */
export const book = (totals: Totals, { day, hour }: Place, wei: bigint): void => {
  change(totals, "day", day, 0n, wei).isBooked = true
  change(totals, "hour", hour, 0n, wei)
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
  for (const [at, total] of totals.of[unit]) {
    if (at < own - reach || at > own) continue
    sum.held += total.held
    sum.booked += total.booked
  }
  return sum
}

/** Amount of the fullest window that counts a reservation of that place: those that end there or later, wei. */
export const fullest = (totals: Totals, window: Window, place: Place): bigint => {
  if (window === "open") return figuresAt(totals, window, place).held
  const { own, reach, unit } = spanOf(window, place)
  let most = 0n
  let last = own
  for (const at of totals.of[unit].keys()) if (at > last && at <= own + reach) last = at
  for (let to = own; to <= last; to++) {
    let sum = totals.sums.find((each) => each.unit === unit && each.to === to && each.from === to - reach)
    if (sum === undefined) {
      const { booked, held } = figuresAt(totals, window, { day: to, hour: to })
      sum = { unit, from: to - reach, to, wei: booked + held }
      totals.sums.push(sum)
    }
    most = to === own ? sum.wei : BigInts.max(most, sum.wei)
  }
  return most
}

/** Number of open reservations without a landed sum. */
export const holdsOf = (totals: Totals): number => totalOf(totals, "open", 0).holds

type Sql = { readonly sql: SqlClient.SqlClient }

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

const rangeColumns: Rows.Columns = {
  chain_id: "text",
  pot: "text",
  account_id: "text",
  first_day: "integer",
  last_day: "integer",
  first_hour: "integer",
  last_hour: "integer"
}

/** The least and the greatest of them, with so many before and after; of none: an empty range. */
const rangeOf = (values: ReadonlyArray<number>, reach: number): readonly [first: number, last: number] => {
  const [first] = values
  if (first === undefined) return [1, 0]
  const bound = (pick: (one: number, other: number) => number) => values.reduce((a, b) => pick(a, b), first)
  return [bound(Math.min) - reach, bound(Math.max) + reach]
}

/** Condition: the row `t` is of the given budget. */
const ofGiven = "t.chain_id = given.chain_id and t.pot = given.pot and t.account_id = given.account_id"

/**
 * Reads the totals of each budget, by `keyOf`: those in which rows of these days and hours are counted, and those of its
 * windows around them.
 */
export const read = (
  store: Sql,
  budgets: Iterable<Budget & { readonly windows?: ReadonlySet<Window> }>,
  places: ReadonlyArray<Place>
): Effect.Effect<All, SqlError> =>
  Effect.gen(function* () {
    const read = new Map<string, Totals>()
    const days = places.map(({ day }) => day)
    const hours = places.map(({ hour }) => hour)
    const ranges = Array.from(budgets, (budget) => {
      read.set(keyOf(budget), none(budget))
      const { account_id, chain_id, pot } = columns(budget)
      return [
        chain_id,
        pot,
        account_id,
        ...rangeOf(days, budget.windows?.has("30d") ? 30 : 0),
        ...rangeOf(hours, budget.windows?.has("24h") ? 24 : 0)
      ]
    })
    const range = (unit: Unit, at: string) =>
      `select t.account_id, t.chain_id, t.pot, t.unit, t.at, t.held, t.holds, t.booked
       from given cross join budget_totals as t where ${ofGiven} and t.unit = '${unit}' and t.at ${at}`
    const stored = yield* Rows.statement<Stored>(
      store,
      `with given(${Object.keys(rangeColumns).join(", ")}) as (${Rows.list(store, rangeColumns)})
       ${range("open", "= 0")}
       union all ${range("day", "between first_day and last_day")}
       union all ${range("hour", "between first_hour and last_hour")}
       union all select t.account_id, t.chain_id, t.pot, 'booked', t.day, '0', 0, t.booked
       from given cross join budget_days as t where ${ofGiven} and t.day between first_day and last_day`,
      [Rows.listing(rangeColumns, ranges)]
    )
    for (const { account_id, at, booked, chain_id, held, holds, pot, unit } of stored) {
      const totals = read.get(
        keyOf({ accountId: accountOf(account_id), chainId: BigInt(chain_id), name: pot })
      )
      if (totals === undefined) continue
      const total = totalOf(totals, unit === "booked" ? "day" : unit, Number(at))
      if (unit !== "day") total.booked = BigInt(booked)
      if (unit === "booked") continue
      total.held = BigInt(held)
      total.holds = Number(holds)
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
export const write = (store: Sql, changed: All): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const rows: Array<ReadonlyArray<unknown>> = []
    const days: Array<ReadonlyArray<unknown>> = []
    for (const { budget, of } of changed.values()) {
      const { account_id, chain_id, pot } = columns(budget)
      const own = [account_id, chain_id, pot]
      for (const [unit, totals] of Object.entries(of))
        for (const [at, { booked, held, holds, isBooked, isChanged }] of totals) {
          if (!isChanged) continue
          const isDay = unit === "day"
          rows.push([...own, unit, at, held.toString(), holds, isDay ? "0" : booked.toString()])
          if (isBooked) days.push([...own, at, booked.toString()])
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
