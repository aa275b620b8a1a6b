import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { dayOf, hourOf, type Lack, type Reservation } from "../../../application/ports/Budgets.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as Totals from "./Totals.js"

/** Reads budgets, and decides which groups of reservations fit into them. */

type Sql = { readonly sql: SqlClient.SqlClient }

/** A reservation that a call has looked at or changed. */
export interface Held extends Totals.Counted {
  /** Null: it is not stored yet. */
  readonly holdNo: Totals.Row["hold_no"] | null
}

/** A budget as it was read, and as the reservations of a call change it. */
export interface Pot {
  readonly totals: Totals.Totals
  /** Reservations of the ids of the call. */
  readonly holds: Map<string, Held>
  /** Ids of what has cost something. */
  readonly ended: ReadonlySet<string>
}

/** Budgets with the reservations of these entries, by name. Deletes expired reservations; the caller writes the totals. */
export const read = (
  store: Sql,
  byBudget: ReadonlyMap<string, ReadonlyArray<Reservation>>,
  now: number
): Effect.Effect<ReadonlyMap<string, Pot>, SqlError> =>
  Effect.gen(function* () {
    const entries = [...byBudget.values()].flat()
    const budgets = [...byBudget.values()].flatMap((own) => own.slice(0, 1))
    const ids = Store.distinct(entries.map(({ id }) => id))
    const rows = yield* Totals.rowsOf(store, budgets, ids, now)
    const old = rows.filter(({ expires_at, state }) => state === "reserved" && Number(expires_at) <= now)
    // A row that was bound in the meantime stays.
    const gone =
      old.length === 0
        ? []
        : yield* Rows.statement<Totals.Row>(
            store,
            `delete from budget_reservations
             where ${Rows.among(store, "hold_no")} and state = 'reserved' and expires_at <= ? returning *`,
            [
              Rows.listOf(
                store,
                old.map(({ hold_no }) => Number(hold_no))
              ),
              now
            ]
          )
    const expired = new Set(gone.map(({ hold_no }) => hold_no))
    const left = rows.filter(({ hold_no }) => !expired.has(hold_no))
    const asked = new Set(ids)
    const found = left.filter(({ id }) => asked.has(id))
    const settled = found.filter(({ state }) => state === "settled")
    // An id that has cost nothing may be used again, such as an op that did not land in time.
    const over = settled.filter(({ landed }) => landed === "0")
    if (over.length > 0)
      yield* store.sql`delete from budget_reservations where ${store.sql.in(
        "hold_no",
        over.map(({ hold_no }) => hold_no)
      )}`
    const totalsOf = yield* Totals.read(
      store,
      budgets,
      [{ day: dayOf(now), hour: hourOf(now) }, ...rows],
      entries.map(({ window }) => window)
    )
    const pots = new Map<string, Pot>()
    for (const [name, totals] of totalsOf) {
      const isOwn = (row: Totals.Row) => Totals.nameOf(Totals.budgetOf(row)) === name
      for (const row of gone.filter(isOwn)) Totals.shift(totals, row, null)
      const own = found.filter(isOwn)
      pots.set(name, {
        totals,
        holds: new Map(
          own
            .filter(({ state }) => state !== "settled")
            .map(({ hold_no: holdNo, ...row }) => [row.id, { ...row, holdNo }])
        ),
        ended: new Set(
          own.flatMap(({ id, landed, state }) => (state === "settled" && landed !== "0" ? [id] : []))
        )
      })
    }
    return pots
  })

/** Null: it is not held any more. */
const put = (pot: Pot, id: string, held: Held | null): void => {
  Totals.shift(pot.totals, pot.holds.get(id) ?? null, held)
  if (held === null) pot.holds.delete(id)
  else pot.holds.set(id, held)
}

/** Lack that keeps an entry from being held next to the others; null: none. */
const lackOf = (pot: Pot, { id, limit, maxOpen, name, window }: Reservation, held: Held): Lack | null => {
  if (pot.ended.has(id)) return { budget: name, reason: "ended", available: 0n }
  const own = pot.holds.get(id)
  if (limit !== null) {
    const of = (each: Held) => BigInt(each.landed ?? each.wei)
    const isCounted = own !== undefined && (window !== "open" || own.landed === null)
    const others = Totals.fullest(pot.totals, window, held) - (isCounted ? of(own) : 0n)
    if (others + BigInt(held.wei) > limit)
      return { budget: name, reason: "limit", available: limit > others ? limit - others : 0n }
  }
  const others = Totals.holdsOf(pot.totals) - (own?.landed === null ? 1 : 0)
  return maxOpen !== null && others >= maxOpen ? { budget: name, reason: "maxOpen", available: 0n } : null
}

/** Outcome of a call: the lack of each group, and the reservations to store. */
export interface Outcome {
  readonly lacks: ReadonlyArray<Lack | null>
  readonly changed: ReadonlyArray<{ readonly entry: Reservation; readonly held: Held }>
}

/** Holds groups in their order, each whole or not at all. Changes the pots. */
export const holdAll = (
  pots: ReadonlyMap<string, Pot>,
  groups: ReadonlyArray<ReadonlyArray<Reservation>>,
  now: number
): Outcome => {
  const changed = new Map<string, { readonly entry: Reservation; readonly held: Held }>()
  const lacks: Array<Lack | null> = []
  for (const group of groups) {
    const made: Array<() => void> = []
    let lack: Lack | null = null
    for (const entry of group) {
      const name = Totals.nameOf(entry)
      const pot = pots.get(name)
      if (pot === undefined) continue
      const { id } = entry
      const own = pot.holds.get(id) ?? null
      const held: Held = {
        holdNo: own?.holdNo ?? null,
        day: own?.day ?? dayOf(now),
        hour: own?.hour ?? hourOf(now),
        wei: own !== null && BigInt(own.wei) > entry.wei ? own.wei : entry.wei.toString(),
        landed: own?.landed ?? null,
        state: own?.state ?? "reserved"
      }
      lack = lackOf(pot, entry, held)
      if (lack !== null) break
      put(pot, id, held)
      const key = `${name} ${id}`
      const before = changed.get(key)
      changed.set(key, { entry, held })
      made.push(() => {
        put(pot, id, own)
        if (before === undefined) changed.delete(key)
        else changed.set(key, before)
      })
    }
    if (lack !== null) for (const undo of made.reverse()) undo()
    lacks.push(lack)
  }
  return { lacks, changed: [...changed.values()] }
}
