import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type Budget,
  Budgets,
  BudgetsError,
  dayOf,
  hourOf,
  type Outcome,
  type Reservation,
  type Window
} from "../../../application/ports/Budgets.js"
import { ClockTrust, type Trust } from "../../../application/ports/clock/ClockTrust.js"
import * as ErrorCode from "../ErrorCode.js"
import * as Migrations from "../Migrations.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as HoldRows from "./HoldRows.js"
import * as Holds from "./Holds.js"
import * as Totals from "./Totals.js"

/**
 * Implements the port `Budgets` on SQL. One transaction changes the amounts of holds and the totals of their budgets,
 * under the locks of these budgets. Calls of one turn of the event loop run together.
 */

/** Days for which settled reservations are kept. */
const keptDays = 2

/** Time between two deletions of old rows by a process. */
const deleteMillis = 60_000

const isDuplicate = (error: unknown) => Store.isSqlError(error) && ErrorCode.suffix(error) === " (23505)"

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

type Bind = Parameters<Budgets["Service"]["bind"]>

const answered =
  (run: ReturnType<typeof Store.transaction>) =>
  <A, E>(effect: Effect.Effect<A, E>) =>
    run(effect).pipe(
      // Another process may have stored a hold with the same id meanwhile.
      Effect.retry({ times: 3, while: (error) => Store.isBroken(error) || isDuplicate(error) }),
      Effect.catchIf(Store.isSqlError, (error) =>
        Effect.fail(new BudgetsError({ message: `the store of budgets failed${ErrorCode.suffix(error)}` }))
      )
    )

/** Ops that accounts received unsigned. */
const handedOut = (
  sql: SqlClient.SqlClient,
  mayDelete: Trust["mayDelete"]
): Pick<Budgets["Service"], "handOut" | "handedOut"> => ({
  handOut: (accountId, chainId, userOpHash, until) =>
    answered(Store.transaction(sql))(
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
    answered(Store.reading(sql))(
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const rows = yield* sql<{ readonly until: number | string }>`
          select until from budget_ops
          where account_id = ${accountId} and chain_id = ${chainId.toString()} and user_op_hash = ${userOpHash}`
        return rows.some(({ until }) => Number(until) * 1_000 >= now)
      })
    )
})

/** Budgets in the database of the client. */
export const make: Migrations.Stored<Budgets["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const { mayDelete } = yield* ClockTrust
  const query = answered(Store.query(sql))
  const reading = answered(Store.reading(sql))

  const store = { sql }
  const rows = HoldRows.make(store)
  let deletedAt = Number.NEGATIVE_INFINITY

  /** Locks the budgets of unsettled holds, and changes the holds with their totals. */
  const change = (
    chainId: bigint,
    ids: ReadonlyArray<string>,
    use: (holds: ReadonlyArray<Holds.Held>, totals: Totals.All) => Effect.Effect<unknown, SqlError>
  ): Effect.Effect<void, BudgetsError> =>
    Effect.gen(function* () {
      const known = Store.isPostgres(sql)
        ? Holds.budgetsOf(yield* query(rows.find(chainId, ids, { isLocking: false })))
        : null
      if (known?.size === 0) return true
      return yield* answered(Store.locking(sql, Array.from(known?.values() ?? [], Totals.lockOf)))(
        Effect.gen(function* () {
          const holds = yield* rows.find(chainId, ids)
          const budgets = Holds.budgetsOf(holds)
          // Another process has added a budget to a hold meanwhile.
          if (known !== null && [...budgets.keys()].some((key) => !known.has(key))) return false
          if (budgets.size === 0) return true
          const totals = yield* Totals.read(store, budgets.values(), holds)
          yield* use(holds, totals)
          yield* Totals.write(store, totals)
          return true
        })
      )
    }).pipe(Effect.repeat({ until: (done) => done }), Effect.asVoid)

  /** Removes them from their budgets. */
  const free = (gone: ReadonlyArray<Holds.Held>, totals: Totals.All) => {
    for (const held of gone) Holds.shift(totals, held, null)
    return rows.remove(gone)
  }

  /** Removes reservations that expired before they were bound. */
  const expire = (now: number) =>
    Effect.gen(function* () {
      const over = yield* query(
        Rows.statement<Pick<Holds.Row, "chain_id" | "id">>(
          store,
          "select chain_id, id from holds where state = 'reserved' and expires_at <= ?",
          [now]
        )
      )
      for (const [chainId, own] of Map.groupBy(over, ({ chain_id }) => chain_id))
        yield* change(
          BigInt(chainId),
          own.map(({ id }) => id),
          // A hold that was bound in the meantime stays.
          (holds, totals) =>
            free(
              holds.filter((held) => Holds.isOver(held, now)),
              totals
            )
        )
    })

  /** Reads what groups need. A settled hold that has cost nothing, such as of an op that did not land in time, begins again. */
  const booksOf = (
    entries: ReadonlyArray<Reservation>,
    budgets: Iterable<Budget & { readonly windows: ReadonlySet<Window> }>,
    now: number
  ) =>
    Effect.gen(function* () {
      const found = yield* Effect.forEach(
        Map.groupBy(entries, ({ chainId }) => chainId),
        ([chainId, own]) => rows.find(chainId, Store.distinct(own.map(({ id }) => id)), { withSettled: true })
      )
      const isFree = (held: Holds.Held) => held.state === "settled" && held.landed === 0n
      const [free, holds] = [found.flat().filter(isFree), found.flat().filter((held) => !isFree(held))]
      yield* rows.remove(free)
      const totals = yield* Totals.read(store, budgets, [{ day: dayOf(now), hour: hourOf(now) }, ...holds])
      return { totals, holds: new Map(holds.map((held) => [Holds.keyOf(held), held])) }
    })

  const reserveAll: Budgets["Service"]["reserve"] = (groups) => {
    const entries = groups.flat()
    const budgets = new Map<string, Budget & { readonly windows: Set<Window> }>()
    for (const entry of entries) {
      const key = Totals.keyOf(entry)
      const known = budgets.get(key)
      if (known === undefined) budgets.set(key, { ...entry, windows: new Set([entry.window]) })
      else known.windows.add(entry.window)
    }
    if (budgets.size === 0) return Effect.succeed(groups.map(() => null))
    return Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* expire(now)
      return yield* answered(Store.locking(sql, Array.from(budgets.values(), Totals.lockOf)))(
        Effect.gen(function* () {
          if (Math.abs(now - deletedAt) >= deleteMillis && (yield* mayDelete)) {
            deletedAt = now
            yield* sql`delete from holds where state = 'settled' and day < ${dayOf(now) - keptDays}`
            yield* Totals.forget(store, now)
          }
          const books = yield* booksOf(entries, budgets.values(), now)
          const before = new Map(books.holds)
          const lacks = Holds.holdAll(books, groups, now)
          yield* rows.keep(
            [...books.holds].flatMap(([key, held]) => (before.get(key) === held ? [] : [held]))
          )
          yield* Totals.write(store, books.totals)
          return lacks
        })
      )
    })
  }

  const reserve = together(
    (all: ReadonlyArray<Parameters<typeof reserveAll>[0]>) =>
      Effect.map(reserveAll(all.flat()), (lacks) => {
        const left = [...lacks]
        return all.map(({ length }) => left.splice(0, length))
      }),
    () => null
  )

  const record = together(
    (all: ReadonlyArray<Parameters<Budgets["Service"]["record"]>>, chainId: bigint) => {
      const outcomes = new Map<string, Outcome>()
      for (const [, each] of all)
        for (const [id, outcome] of each) {
          const before = outcomes.get(id)
          // The first end counts, and the last cost before it.
          if (before?.isEnd !== true)
            outcomes.set(
              id,
              outcome.isEnd ? { ...outcome, cost: outcome.cost ?? before?.cost ?? null } : outcome
            )
        }
      const ids = [...outcomes.keys()]
      return Effect.as(
        change(chainId, ids, (holds, totals) =>
          Effect.gen(function* () {
            const landed: Array<readonly [Holds.Held, bigint | null]> = []
            const booked: Array<Holds.Held> = []
            const gone: Array<Holds.Held> = []
            for (const held of holds) {
              const outcome = outcomes.get(held.id)
              if (outcome?.isEnd) (Holds.end(totals, held, outcome.cost) ? booked : gone).push(held)
              else if (outcome !== undefined) {
                landed.push([held, outcome.cost])
                Holds.shift(totals, held, { state: held.state, landed: outcome.cost })
              }
            }
            yield* rows.land(landed)
            yield* rows.settle(booked)
            yield* rows.remove(gone)
          })
        ),
        all.map(() => undefined)
      )
    },
    ([chainId]) => chainId
  )

  const bind = together(
    (all: ReadonlyArray<Bind>, chainId: bigint) =>
      answered(Store.transaction(sql))(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const first = all.flatMap(([hold, note]) =>
            hold.exactly === undefined ? [] : [{ hold, note, parts: hold.exactly }]
          )
          const bound = new Set(yield* rows.bindFirst(first, now))
          const others = all.filter(([{ exactly }]) => exactly === undefined)
          if (others.length === 0) return all.map(([{ id }]) => bound.has(id))
          const found = yield* rows.find(
            chainId,
            others.map(([{ id }]) => id)
          )
          const byId = new Map(found.map((held) => [held.id, held]))
          const terms = new Map<Holds.Held, HoldRows.Terms>()
          const results = all.map(([{ due = 0n, exactly, id, wei }, note]) => {
            if (exactly !== undefined) return bound.has(id)
            const held = byId.get(id)
            if (held === undefined || Holds.isOver(held, now)) return false
            for (const part of held.parts.values()) if (part.wei < wei) return false
            const before = terms.get(held)
            const least = before === undefined || due < before.due ? due : before.due
            terms.set(held, { notes: new Set([...(before?.notes ?? held.notes), note]), due: least })
            return true
          })
          yield* rows.bind([...terms])
          return results
        })
      ),
    ([{ chainId }]) => chainId
  )

  return {
    reserve,
    record: (...call) => record(call),
    settle: (chainId, id, cost) => record([chainId, new Map([[id, { isEnd: true, cost }]])]),
    land: (chainId, id, cost) => record([chainId, new Map([[id, { isEnd: false, cost }]])]),
    bind: (...call) => bind(call),
    release: (chainId, ids) =>
      ids.length === 0
        ? Effect.void
        : change(chainId, ids, (holds, totals) =>
            free(
              holds.filter(({ state }) => state === "reserved"),
              totals
            )
          ),
    open: (chainId, beginning) =>
      query(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const id = sql.literal(Store.isPostgres(sql) ? 'id collate "C"' : "id")
          const named =
            beginning === undefined
              ? sql.literal("1 = 1")
              : sql`${id} >= ${beginning} and ${id} < ${`${beginning}\uffff`}`
          const rows = yield* sql<Holds.Row>`
            select * from holds
            where chain_id = ${chainId.toString()} and ${named} and state <> 'settled'
              and (state = 'bound' or expires_at > ${now})
            order by hold_no`
          return rows.flatMap((row) => Holds.each(Holds.heldOf(row)))
        })
      ),
    due: (chainId, accountId, block) =>
      query(
        Effect.gen(function* () {
          const of = [chainId.toString(), accountId, Number(block)]
          const bound = "chain_id = ? and owner = ? and state = 'bound'"
          const rows = yield* Rows.statement<Holds.Row>(
            store,
            `select * from holds where ${bound} and due <= ? order by hold_no`,
            of
          )
          const later = yield* Rows.statement(
            store,
            `select 1 from holds where ${bound} and due > ? limit 1`,
            of
          )
          return {
            holds: rows.map(Holds.heldOf).map((held) => ({ ...held, parts: [...held.parts.values()] })),
            hasLater: later.length > 0
          }
        })
      ),
    figures: (budget, at, window) =>
      reading(
        Effect.gen(function* () {
          const expired = yield* Rows.statement<Holds.Row>(
            store,
            "select * from holds where state = 'reserved' and expires_at <= ? and chain_id = ?",
            [yield* Clock.currentTimeMillis, budget.chainId.toString()]
          )
          const over = expired.map(Holds.heldOf)
          const last = { day: dayOf(at), hour: hourOf(at) }
          const wanted = { ...budget, windows: new Set([window]) }
          const totals = yield* Totals.read(store, [wanted], [last, ...over])
          for (const held of over) Holds.shift(totals, held, null)
          const own = totals.get(Totals.keyOf(budget))
          return own === undefined ? { held: 0n, booked: 0n } : Totals.figuresAt(own, window, last)
        })
      ),
    owners: (chainId, name, at) =>
      reading(
        Effect.gen(function* () {
          const of = sql`chain_id = ${chainId.toString()} and pot = ${name}`
          const day = dayOf(at)
          const rows = yield* sql<{ readonly account_id: string }>`
            select account_id from budget_totals where ${of} and unit = 'day' and at = ${day}
            union select account_id from budget_days where ${of} and day = ${day}
            order by account_id`
          return rows.map(({ account_id }) => Totals.accountOf(account_id))
        })
      ),
    ...handedOut(sql, mayDelete)
  }
})

/** The port `Budgets` in the database. */
export const layer: Migrations.StoredLayer<Budgets> = Layer.effect(Budgets, make)
