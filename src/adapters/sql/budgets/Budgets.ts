import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import type { SqlError } from "effect/sql/SqlError"
import {
  type Budget,
  Budgets,
  BudgetsError,
  dayOf,
  type Hold,
  hourOf
} from "../../../application/ports/Budgets.js"
import { ClockTrust } from "../../../application/ports/clock/ClockTrust.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import * as ErrorCode from "../ErrorCode.js"
import * as Migrations from "../Migrations.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as Pots from "./Pots.js"
import * as Totals from "./Totals.js"

type Row = Totals.Row

/** Days for which settled reservations are kept. */
const keptDays = 2

const accountOf = (stored: string): AccountId | null => (stored === "" ? null : (stored as AccountId))

const holdOf = (row: Row): Hold => ({
  ...Totals.budgetOf(row),
  id: row.id,
  wei: BigInt(row.wei),
  bound: row.state === "bound",
  landed: row.landed === null ? null : BigInt(row.landed),
  expiresAt: Number(row.expires_at),
  notes: notesOf(row)
})

const notesOf = ({ note }: Pick<Row, "note">): ReadonlyArray<string> =>
  note.split("\n").filter((line) => line !== "")

/** Time between two deletions of old rows by a process. */
const deleteMillis = 60_000

const holdColumns: Rows.Columns = {
  account_id: "text",
  chain_id: "text",
  pot: "text",
  id: "text",
  day: "integer",
  hour: "integer",
  wei: "text",
  state: "text",
  note: "text",
  expires_at: "bigint"
}

const raisedColumns: Rows.Columns = { hold_no: "bigint", wei: "text", expires_at: "bigint" }
const landedColumns: Rows.Columns = { hold_no: "bigint", landed: "text" }
const notedColumns: Rows.Columns = { hold_no: "bigint", note: "text" }

interface Call<A, B> extends Request.Request<B, BudgetsError> {
  readonly given: A
}

/** Runs the calls of one turn of the event loop and of one `key` together. */
const together = <A, B, K>(
  run: (all: ReadonlyArray<A>, key: K) => Effect.Effect<ReadonlyArray<B>, BudgetsError>,
  key: (given: A) => K
): ((given: A) => Effect.Effect<B, BudgetsError>) => {
  const make = Request.of<Call<A, B>>()
  const resolver = RequestResolver.makeGrouped<Call<A, B>, K>({
    key: ({ request }) => key(request.given),
    resolver: (calls, of) =>
      Effect.map(
        Effect.exit(
          run(
            calls.map(({ request }) => request.given),
            of
          )
        ),
        (exit) => {
          for (const [place, call] of calls.entries())
            call.completeUnsafe(Exit.map(exit, (results) => results[place] as B))
        }
      )
  })
  return (given) => Effect.request(make({ given }), resolver)
}

type Binding = Parameters<Budgets["Service"]["bind"]>

/** Whether each hold of the chain is bound now. */
const bindAll = (
  store: Pick<Store.Store, "sql">,
  chainId: bigint,
  all: ReadonlyArray<Binding>,
  now: number
) =>
  Effect.gen(function* () {
    const ids = Rows.listOf(
      store,
      all.map(([{ id }]) => id)
    )
    const rows = yield* Rows.statement<Row>(
      store,
      `select * from budget_reservations
       where chain_id = ? and ${Rows.among(store, "id")} and state <> 'settled'
         and (state = 'bound' or expires_at > ?) order by hold_no ${Store.isPostgres(store.sql) ? "for update" : ""}`,
      [chainId.toString(), ids, now]
    )
    const byId = Map.groupBy(rows, ({ id }) => id)
    const notes = new Map<Row["hold_no"], ReadonlyArray<string>>()
    const bound = all.map(([{ id, wei }, note]) => {
      const own = byId.get(id) ?? []
      const isHeld = own.length > 0 && own.every((row) => BigInt(row.wei) >= wei)
      if (isHeld)
        for (const row of own) notes.set(row.hold_no, [...(notes.get(row.hold_no) ?? notesOf(row)), note])
      return isHeld
    })
    yield* Rows.each(
      store,
      `update budget_reservations set state = 'bound', note = given.note
       from (%) as given where budget_reservations.hold_no = given.hold_no`,
      notedColumns,
      [...notes].map(([holdNo, lines]) => [holdNo, [...new Set(lines)].join("\n")])
    )
    return bound
  })

/** Budgets in the database of the client. */
export const make: Migrations.Stored<Budgets["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const forUpdate = Store.isPostgres(sql) ? "for update" : ""
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

  const store = { sql }
  let deletedAt = Number.NEGATIVE_INFINITY

  /** Locks budgets in a fixed order, to prevent deadlocks. */
  const lockAll = (budgets: ReadonlyArray<Budget>) =>
    Effect.forEach(Store.distinct(budgets.map(Totals.nameOf)), Store.lock(sql), { discard: true })

  /** Stores what a call holds. */
  const keep = (pots: ReadonlyMap<string, Pots.Pot>, changed: Pots.Outcome["changed"]) =>
    Effect.gen(function* () {
      yield* Rows.each(
        store,
        `update budget_reservations set wei = given.wei, expires_at = given.expires_at
         from (%) as given where budget_reservations.hold_no = given.hold_no`,
        raisedColumns,
        changed.flatMap(({ entry, held: { holdNo, wei } }) =>
          holdNo === null ? [] : [[holdNo, wei, entry.expiresAt]]
        )
      )
      yield* Rows.insert(
        store,
        "budget_reservations",
        holdColumns,
        changed
          .filter(({ held }) => held.holdNo === null)
          .map(({ entry, held: { day, hour, wei } }) => {
            const budget = Object.values(Totals.columns(entry))
            return [...budget, entry.id, day, hour, wei, "reserved", "", entry.expiresAt]
          })
      )
      yield* Totals.write(
        store,
        [...pots.values()].map(({ totals }) => totals)
      )
    })

  const reserveAll: Budgets["Service"]["reserve"] = (groups) => {
    const byBudget = Map.groupBy(groups.flat(), Totals.nameOf)
    if (byBudget.size === 0) return Effect.succeed(groups.map(() => null))
    return answered(Store.locking(sql, [...byBudget.keys()]))(
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (Math.abs(now - deletedAt) >= deleteMillis && (yield* mayDelete)) {
          deletedAt = now
          yield* sql`
            delete from budget_reservations
            where state = 'settled' and day < ${dayOf(now) - keptDays}`
          yield* Totals.forget(store, now)
        }
        const pots = yield* Pots.read(store, byBudget, now)
        const { changed, lacks } = Pots.holdAll(pots, groups, now)
        yield* keep(pots, changed)
        return lacks
      })
    )
  }

  /** Unsettled rows of these ids, in budgets that are locked from here on. */
  const lockRows = (chainId: bigint, ids: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const find = (locking: string) =>
        Rows.statement<Row>(
          store,
          `select * from budget_reservations
           where chain_id = ? and ${Rows.among(store, "id")} and state <> 'settled' order by hold_no ${locking}`,
          [chainId.toString(), Rows.listOf(store, ids)]
        )
      const found = yield* find("")
      if (!Store.isPostgres(sql) || found.length === 0) return found
      const names = new Set(found.map((row) => Totals.nameOf(Totals.budgetOf(row))))
      yield* lockAll(found.map(holdOf))
      return (yield* find(forUpdate)).filter((row) => names.has(Totals.nameOf(Totals.budgetOf(row))))
    })

  const reserve = together(
    (all: ReadonlyArray<Parameters<typeof reserveAll>[0]>) =>
      Effect.map(reserveAll(all.flat()), (lacks) => {
        const left = [...lacks]
        return all.map(({ length }) => left.splice(0, length))
      }),
    () => null
  )

  interface Change {
    readonly chainId: bigint
    readonly ids: ReadonlyArray<string>
    readonly wei?: bigint | null
  }

  /**
   * Changes unsettled rows by their ids, with the totals of their budgets; `write` stores the rows' landed sums. `counts`:
   * of calls for the same id.
   */
  const changing = (
    counts: "first" | "last",
    use: (row: Row, change: Change, totals: Totals.Totals) => string | null | undefined,
    write: (
      changed: ReadonlyArray<readonly [Row["hold_no"], string | null]>
    ) => Effect.Effect<unknown, SqlError>
  ) => {
    const run = together(
      (all: ReadonlyArray<Change>, chainId: bigint) =>
        transaction(
          Effect.gen(function* () {
            const results = all.map(() => undefined)
            const byId = new Map<string, Change>()
            for (const change of counts === "last" ? all : all.toReversed())
              for (const id of change.ids) byId.set(id, change)
            const rows = yield* lockRows(chainId, [...byId.keys()])
            const byName = Map.groupBy(rows, (row) => Totals.nameOf(Totals.budgetOf(row)))
            const budgets = [...byName.values()].flatMap((own) => own.slice(0, 1).map(holdOf))
            if (budgets.length === 0) return results
            const totals = yield* Totals.read(store, budgets, rows, [])
            const changed = [...byName].flatMap(([name, own]) =>
              own.flatMap((row): ReadonlyArray<readonly [Row["hold_no"], string | null]> => {
                const [change, of] = [byId.get(row.id), totals.get(name)]
                const landed = change === undefined || of === undefined ? undefined : use(row, change, of)
                return landed === undefined ? [] : [[row.hold_no, landed]]
              })
            )
            yield* write(changed)
            yield* Totals.write(store, [...totals.values()])
            return results
          })
        ),
      ({ chainId }) => chainId
    )
    return (change: Change): Effect.Effect<void, BudgetsError> =>
      change.ids.length === 0 ? Effect.void : run(change)
  }

  const settle = changing(
    "first",
    (row, { wei }, totals) => {
      const cost = wei ?? BigInt(row.landed ?? 0)
      Totals.shift(totals, row, null)
      Totals.book(totals, row, cost)
      return cost.toString()
    },
    (changed) =>
      Rows.each(
        store,
        `update budget_reservations set state = 'settled', landed = given.landed
         from (%) as given where budget_reservations.hold_no = given.hold_no`,
        landedColumns,
        changed
      )
  )

  const land = changing(
    "last",
    (row, { wei = null }, totals) => {
      const landed = wei?.toString() ?? null
      Totals.shift(totals, row, { ...row, landed })
      return landed
    },
    (changed) =>
      Rows.each(
        store,
        `update budget_reservations set landed = given.landed
         from (%) as given where budget_reservations.hold_no = given.hold_no`,
        landedColumns,
        changed
      )
  )

  const release = changing(
    "first",
    (row, _, totals) => {
      if (row.state !== "reserved") return undefined
      Totals.shift(totals, row, null)
      return null
    },
    (changed) =>
      changed.length === 0
        ? Effect.void
        : Rows.statement(store, `delete from budget_reservations where ${Rows.among(store, "hold_no")}`, [
            Rows.listOf(
              store,
              changed.map(([holdNo]) => Number(holdNo))
            )
          ])
  )

  const bind = together(
    (all: ReadonlyArray<Binding>, chainId: bigint) =>
      transaction(Effect.flatMap(Clock.currentTimeMillis, (now) => bindAll(store, chainId, all, now))),
    ([{ chainId }]) => chainId
  )

  return {
    reserve,
    settle: (chainId, id, wei) => settle({ chainId, ids: [id], wei }),
    bind: (...call) => bind(call),
    release: (chainId, ids) => release({ chainId, ids }),
    land: (chainId, id, wei) => land({ chainId, ids: [id], wei }),
    open: (chainId, beginning) =>
      reading(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const id = sql.literal(Store.isPostgres(sql) ? 'id collate "C"' : "id")
          const named =
            beginning === undefined
              ? sql.literal("1 = 1")
              : sql`${id} >= ${beginning} and ${id} < ${`${beginning}\uffff`}`
          const rows = yield* sql<Row>`
            select * from budget_reservations
            where chain_id = ${chainId.toString()} and ${named} and state <> 'settled'
              and (state = 'bound' or expires_at > ${now})
            order by hold_no`
          return rows.map(holdOf)
        })
      ),
    figures: (budget, at, window) =>
      reading(
        Effect.gen(function* () {
          const expired = yield* Rows.statement<Row>(
            store,
            `select * from budget_reservations
             where ${Totals.ofBudget} and state = 'reserved' and expires_at <= ?`,
            [...Totals.keyOf(budget), yield* Clock.currentTimeMillis]
          )
          const last = { day: dayOf(at), hour: hourOf(at) }
          const read = yield* Totals.read(store, [budget], [last, ...expired], [window])
          const totals = read.get(Totals.nameOf(budget))
          if (totals === undefined) return { held: 0n, booked: 0n }
          for (const row of expired) Totals.shift(totals, row, null)
          return Totals.figuresAt(totals, window, last)
        })
      ),
    owners: (chainId, name, at) =>
      reading(
        Effect.gen(function* () {
          const of = sql`chain_id = ${chainId.toString()} and pot = ${name}`
          const day = dayOf(at)
          const rows = yield* sql<Pick<Row, "account_id">>`
            select account_id from budget_totals where ${of} and unit = 'day' and at = ${day}
            union select account_id from budget_days where ${of} and day = ${day}
            order by account_id`
          return rows.map(({ account_id }) => accountOf(account_id))
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
      reading(
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

/** The port `Budgets` in the database. */
export const layer: Migrations.StoredLayer<Budgets> = Layer.effect(Budgets, make)
