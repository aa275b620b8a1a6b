import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import {
  type Budget,
  Budgets,
  BudgetsError,
  dayOf,
  type Hold,
  type Lack,
  type Reservation
} from "../../application/ports/Budgets.js"
import { ClockTrust } from "../../application/ports/clock/ClockTrust.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"
import * as Store from "./Store.js"

interface Row {
  readonly hold_no: number | string
  readonly account_id: string
  readonly chain_id: string
  readonly pot: string
  readonly id: string
  readonly day: number
  readonly wei: string
  readonly landed: string | null
  readonly state: "reserved" | "bound" | "settled"
  /** One a line. */
  readonly note: string
  readonly expires_at: number | string
}

/** Days for which settled reservations are kept. */
const keptDays = 2

const columns = ({ accountId, chainId, name }: Budget) => ({
  account_id: accountId ?? "",
  chain_id: chainId.toString(),
  pot: name
})

const lockName = (budget: Budget): string => `budget:${JSON.stringify(Object.values(columns(budget)))}`

const holdOf = (row: Row): Hold => ({
  accountId: row.account_id === "" ? null : (row.account_id as AccountId),
  chainId: BigInt(row.chain_id),
  name: row.pot,
  id: row.id,
  wei: BigInt(row.wei),
  bound: row.state === "bound",
  landed: row.landed === null ? null : BigInt(row.landed),
  expiresAt: Number(row.expires_at),
  notes: notesOf(row)
})

const notesOf = ({ note }: Pick<Row, "note">): ReadonlyArray<string> =>
  note.split("\n").filter((line) => line !== "")

/** One reservation's share of its budget. */
interface Held {
  /** Null: not stored yet. */
  readonly holdNo: Row["hold_no"] | null
  readonly day: number
  readonly wei: bigint
  readonly landed: bigint | null
}

/** A stored budget with the changes of one call's reservations. */
interface Pot {
  readonly holds: Map<string, Held>
  /** Ids that were booked with a cost. */
  readonly ended: ReadonlySet<string>
  /** Held and booked wei, by day. */
  readonly days: Map<number, bigint>
  /** Held wei of reservations that have not landed; `count`: their number. */
  open: bigint
  count: number
}

/** `held` null: releases the reservation. */
const put = (pot: Pot, id: string, held: Held | null): void => {
  const change = (each: Held | undefined | null, sign: 1n | -1n): void => {
    if (each == null) return
    pot.days.set(each.day, (pot.days.get(each.day) ?? 0n) + sign * (each.landed ?? each.wei))
    if (each.landed !== null) return
    pot.open += sign * each.wei
    pot.count += Number(sign)
  }
  change(pot.holds.get(id), -1n)
  change(held, 1n)
  if (held === null) pot.holds.delete(id)
  else pot.holds.set(id, held)
}

/** The limit that `held` exceeds; null: the budget covers it. */
const lackOf = (pot: Pot, { daily, id, limit, maxOpen, name }: Reservation, held: Held): Lack | null => {
  if (pot.ended.has(id)) return { budget: name, reason: "ended", available: 0n }
  const own = pot.holds.get(id)
  if (limit !== null) {
    const others = daily
      ? (pot.days.get(held.day) ?? 0n) - (own?.landed ?? own?.wei ?? 0n)
      : pot.open - (own?.landed === null ? own.wei : 0n)
    if (others + held.wei > limit)
      return { budget: name, reason: "limit", available: limit > others ? limit - others : 0n }
  }
  const others = pot.count - (own?.landed === null ? 1 : 0)
  return maxOpen !== null && others >= maxOpen ? { budget: name, reason: "maxOpen", available: 0n } : null
}

interface Change {
  readonly entry: Reservation
  readonly held: Held
}

/** Takes each group that fits from the pots, as a whole. `lacks` has the first shortage of each group; null: it fits. */
const holding = (
  pots: ReadonlyMap<string, Pot>,
  groups: ReadonlyArray<ReadonlyArray<Reservation>>,
  now: number
): { readonly changed: ReadonlyMap<string, Change>; readonly lacks: ReadonlyArray<Lack | null> } => {
  const changed = new Map<string, Change>()
  const lacks: Array<Lack | null> = []
  for (const group of groups) {
    const made: Array<() => void> = []
    let lack: Lack | null = null
    for (const entry of group) {
      const name = lockName(entry)
      const pot = pots.get(name)
      if (pot === undefined) continue
      const { id } = entry
      const own = pot.holds.get(id) ?? null
      const held: Held = {
        holdNo: own?.holdNo ?? null,
        day: own?.day ?? dayOf(now),
        wei: own !== null && own.wei > entry.wei ? own.wei : entry.wei,
        landed: own?.landed ?? null
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
  return { changed, lacks }
}

export const make: Migrations.Stored<Budgets["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const lock = Store.lock(sql)
  const forUpdate = sql.literal(Store.isPostgres(sql) ? "for update" : "")
  const { mayDelete } = yield* ClockTrust
  const answered =
    (run: ReturnType<typeof Store.transaction>) =>
    <A, E>(effect: Effect.Effect<A, E>) =>
      run(effect).pipe(
        Effect.retry({ times: 3, while: Store.isBroken }),
        Effect.catchIf(Store.isSqlError, (error) =>
          Effect.fail(new BudgetsError({ message: `the store of budgets failed${ErrorCode.suffix(error)}` }))
        )
      )
  const transaction = answered(Store.transaction(sql))
  const reading = answered(Store.reading(sql))

  /** Locks budgets in a fixed order, to prevent deadlocks. */
  const lockAll = (budgets: ReadonlyArray<Budget>) =>
    Effect.forEach([...new Set(budgets.map(lockName))].sort(), lock, { discard: true })

  const of = (budget: Budget) => {
    const { account_id, chain_id, pot } = columns(budget)
    return sql`chain_id = ${chain_id} and pot = ${pot} and account_id = ${account_id}`
  }

  const bookedOf = (budget: Budget, day: number) =>
    Effect.map(
      sql<{ readonly booked: string }>`
        select booked from budget_days where ${of(budget)} and day = ${day}`,
      ([row]) => BigInt(row?.booked ?? 0)
    )

  const openOf = (budget: Budget, now: number) => sql<Row>`
    select * from budget_holds
    where ${of(budget)} and state <> 'settled' and (state = 'bound' or expires_at > ${now})`

  const potOf = (budget: Budget, ids: ReadonlyArray<string>, now: number): Effect.Effect<Pot, SqlError> =>
    Effect.gen(function* () {
      yield* sql`delete from budget_holds
        where ${of(budget)} and state <> 'settled' and state = 'reserved' and expires_at <= ${now}`
      const rows = yield* openOf(budget, now)
      const settled = yield* Store.inChunks(
        ids,
        (chunk) => sql<Row>`
          select * from budget_holds where ${of(budget)} and ${sql.in("id", chunk)} and state = 'settled'`
      )
      // A reservation that cost nothing may be made again, for example after an op expired.
      const over = settled.filter(({ landed }) => landed === "0")
      if (over.length > 0)
        yield* sql`delete from budget_holds where ${sql.in(
          "hold_no",
          over.map(({ hold_no }) => hold_no)
        )}`
      const booked = yield* sql<{ readonly day: number; readonly booked: string }>`
        select day, booked from budget_days where ${of(budget)}
          and ${sql.in("day", [dayOf(now), ...rows.map(({ day }) => day)])}`
      const pot: Pot = {
        holds: new Map(),
        ended: new Set(settled.flatMap(({ id, landed }) => (landed === "0" ? [] : [id]))),
        days: new Map(booked.map((each) => [each.day, BigInt(each.booked)])),
        open: 0n,
        count: 0
      }
      for (const { day, hold_no, id, landed, wei } of rows)
        put(pot, id, {
          holdNo: hold_no,
          day,
          wei: BigInt(wei),
          landed: landed === null ? null : BigInt(landed)
        })
      return pot
    })

  const reserve: Budgets["Service"]["reserve"] = (groups) =>
    transaction(
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const entries = groups.flat()
        yield* lockAll(entries)
        if (yield* mayDelete)
          yield* sql`
            delete from budget_holds where state = 'settled' and day < ${dayOf(now) - keptDays}`
        const pots = new Map<string, Pot>()
        for (const [name, own] of Map.groupBy(entries, lockName)) {
          const [budget] = own
          if (budget !== undefined)
            pots.set(
              name,
              yield* potOf(
                budget,
                own.map(({ id }) => id),
                now
              )
            )
        }
        const { changed, lacks } = holding(pots, groups, now)
        const fresh: Array<Change> = []
        for (const each of changed.values()) {
          const { entry, held } = each
          const raised =
            held.holdNo === null
              ? []
              : yield* sql`
                  update budget_holds set wei = ${held.wei.toString()}, expires_at = ${entry.expiresAt}
                  where hold_no = ${held.holdNo} and state <> 'settled'
                  returning hold_no`
          // Another transaction may have released it.
          if (raised.length === 0) fresh.push(each)
        }
        yield* Store.forChunks(
          fresh,
          (chunk) =>
            sql`insert into budget_holds ${sql.insert(
              Arr.map(chunk, ({ entry, held }) => ({
                ...columns(entry),
                id: entry.id,
                day: held.day,
                wei: held.wei.toString(),
                landed: null,
                state: "reserved",
                note: "",
                expires_at: entry.expiresAt
              }))
            )}`
        )
        return lacks
      })
    )

  const settle = (chainId: bigint, id: string, wei: bigint | null) =>
    transaction(
      Effect.gen(function* () {
        const found = yield* sql<Row>`
          select * from budget_holds
          where chain_id = ${chainId.toString()} and id = ${id} and state <> 'settled'`
        const holds = found.map(holdOf)
        yield* lockAll(holds)
        for (const [place, { hold_no, day }] of found.entries()) {
          const budget = holds[place]
          const [ended] = yield* sql<Pick<Row, "landed">>`
            update budget_holds set state = 'settled', landed = coalesce(${wei?.toString() ?? null}, landed, '0')
            where hold_no = ${hold_no} and state <> 'settled' returning landed`
          if (budget === undefined || ended === undefined) continue
          const cost = BigInt(ended.landed ?? 0)
          const booked = ((yield* bookedOf(budget, day)) + cost).toString()
          yield* sql`
            insert into budget_days ${sql.insert({ ...columns(budget), day, booked })}
            on conflict (account_id, chain_id, pot, day) do update set booked = ${booked}`
        }
      })
    )

  return {
    reserve,
    settle,
    bind: ({ chainId, id, wei }, note) =>
      transaction(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* sql<Row>`
            select * from budget_holds
            where chain_id = ${chainId.toString()} and id = ${id} and state <> 'settled'
              and (state = 'bound' or expires_at > ${now}) order by hold_no
            ${forUpdate}`
          if (rows.length === 0 || rows.some((row) => BigInt(row.wei) < wei)) return false
          for (const row of rows) {
            const notes = [...new Set([...notesOf(row), note])].join("\n")
            yield* sql`update budget_holds set state = 'bound', note = ${notes} where hold_no = ${row.hold_no}`
          }
          return true
        })
      ),
    release: (chainId, ids) =>
      transaction(
        Store.forChunks(
          ids,
          (chunk) => sql`
            delete from budget_holds
            where chain_id = ${chainId.toString()} and ${sql.in("id", chunk)} and state = 'reserved'`
        )
      ),
    land: (chainId, id, wei) =>
      transaction(
        Effect.asVoid(sql`
          update budget_holds set landed = ${wei?.toString() ?? null}
          where chain_id = ${chainId.toString()} and id = ${id} and state <> 'settled'`)
      ),
    open: (chainId) =>
      transaction(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* sql<Row>`
            select * from budget_holds
            where chain_id = ${chainId.toString()} and state <> 'settled'
              and (state = 'bound' or expires_at > ${now})
            order by hold_no`
          return rows.map(holdOf)
        })
      ),
    figures: (budget, at) =>
      reading(
        Effect.gen(function* () {
          const rows = yield* openOf(budget, yield* Clock.currentTimeMillis)
          const held = rows
            .filter(({ day }) => day === dayOf(at))
            .reduce((sum, { landed, wei }) => sum + BigInt(landed ?? wei), 0n)
          return { held, booked: yield* bookedOf(budget, dayOf(at)) }
        })
      ),
    handOut: (accountId, chainId, userOpHash, until) =>
      transaction(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          if (yield* mayDelete) yield* sql`delete from budget_ops where until < ${Math.floor(now / 1_000)}`
          yield* sql`
            insert into budget_ops ${sql.insert({
              account_id: accountId,
              chain_id: chainId.toString(),
              user_op_hash: userOpHash,
              until
            })}
            on conflict (account_id, chain_id, user_op_hash) do update set until = ${until}`
        })
      ),
    handedOut: (accountId, chainId, userOpHash) =>
      transaction(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* sql<{ readonly until: number | string }>`
            select until from budget_ops
            where account_id = ${accountId} and chain_id = ${chainId.toString()} and user_op_hash = ${userOpHash}`
          return rows.some(({ until }) => Number(until) * 1_000 >= now)
        })
      )
  }
})

export const layer: Migrations.StoredLayer<Budgets> = Layer.effect(Budgets, make)
