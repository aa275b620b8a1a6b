import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  Budgets,
  BudgetsError,
  type Cost,
  dayOf,
  hourOf,
  type Reservation
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

/** Whether a hold may be bound on these terms. */
const meets = ({ parts, state }: Holds.Held, { isFirst = false, parts: least = [], wei }: Bind[0]): boolean =>
  !(isFirst && state === "bound") &&
  [...parts.values()].every((part) => part.wei >= wei) &&
  least.every((part) => (parts.get(Totals.nameOf(part))?.wei ?? -1n) >= part.wei)

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
    use: (
      holds: ReadonlyArray<Holds.Held>,
      totals: ReadonlyMap<string, Totals.Totals>
    ) => Effect.Effect<unknown, SqlError>
  ): Effect.Effect<void, BudgetsError> =>
    Effect.gen(function* () {
      const known = Store.isPostgres(sql)
        ? Holds.budgetsOf(yield* query(rows.find(chainId, ids, { isLocking: false })))
        : null
      if (known?.size === 0) return true
      return yield* answered(Store.locking(sql, [...(known?.keys() ?? [])]))(
        Effect.gen(function* () {
          const holds = yield* rows.find(chainId, ids)
          const budgets = Holds.budgetsOf(holds)
          // Another process has added a budget to a hold meanwhile.
          if (known !== null && [...budgets.keys()].some((name) => !known.has(name))) return false
          if (budgets.size === 0) return true
          const totals = yield* Totals.read(store, [...budgets.values()], holds, [])
          yield* use(holds, totals)
          yield* Totals.write(store, [...totals.values()])
          return true
        })
      )
    }).pipe(Effect.repeat({ until: (done) => done }), Effect.asVoid)

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
          (holds, totals) => {
            // A hold that was bound in the meantime stays.
            const gone = holds.filter((held) => Holds.isOver(held, now))
            for (const held of gone) Holds.shift(totals, held, null)
            return rows.remove(gone)
          }
        )
    })

  /** Reads what groups need. A settled hold that has cost nothing, such as of an op that did not land in time, begins again. */
  const booksOf = (byBudget: ReadonlyMap<string, ReadonlyArray<Reservation>>, now: number) =>
    Effect.gen(function* () {
      const entries = [...byBudget.values()].flat()
      const found = yield* Effect.forEach(
        Map.groupBy(entries, ({ chainId }) => chainId),
        ([chainId, own]) => rows.find(chainId, Store.distinct(own.map(({ id }) => id)), { withSettled: true })
      )
      const isFree = (held: Holds.Held) => held.state === "settled" && held.landed === 0n
      const [free, holds] = [found.flat().filter(isFree), found.flat().filter((held) => !isFree(held))]
      yield* rows.remove(free)
      const totals = yield* Totals.read(
        store,
        [...byBudget.values()].flatMap((own) => own.slice(0, 1)),
        [{ day: dayOf(now), hour: hourOf(now) }, ...holds],
        entries.map(({ window }) => window)
      )
      return { totals, holds: new Map(holds.map((held) => [Holds.keyOf(held), held])) }
    })

  const reserveAll: Budgets["Service"]["reserve"] = (groups) => {
    const byBudget = Map.groupBy(groups.flat(), Totals.nameOf)
    if (byBudget.size === 0) return Effect.succeed(groups.map(() => null))
    return Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* expire(now)
      return yield* answered(Store.locking(sql, [...byBudget.keys()]))(
        Effect.gen(function* () {
          if (Math.abs(now - deletedAt) >= deleteMillis && (yield* mayDelete)) {
            deletedAt = now
            yield* sql`delete from holds where state = 'settled' and day < ${dayOf(now) - keptDays}`
            yield* Totals.forget(store, now)
          }
          const books = yield* booksOf(byBudget, now)
          const before = new Map(books.holds)
          const lacks = Holds.holdAll(books, groups, now)
          yield* rows.keep(
            [...books.holds].flatMap(([key, held]) => (before.get(key) === held ? [] : [held]))
          )
          yield* Totals.write(store, [...books.totals.values()])
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

  interface Change {
    readonly chainId: bigint
    readonly ids: ReadonlyArray<string>
    readonly cost?: Cost | null
  }

  /** Changes unsettled holds by their ids. `counts`: of calls for the same id. */
  const changing = (
    counts: "first" | "last",
    use: (
      holds: ReadonlyArray<readonly [Holds.Held, Change]>,
      totals: ReadonlyMap<string, Totals.Totals>
    ) => Effect.Effect<unknown, SqlError>
  ) => {
    const run = together(
      (all: ReadonlyArray<Change>, chainId: bigint) => {
        const byId = new Map<string, Change>()
        for (const each of counts === "last" ? all : all.toReversed())
          for (const id of each.ids) byId.set(id, each)
        return Effect.as(
          change(chainId, [...byId.keys()], (holds, totals) =>
            use(
              holds.flatMap((held) => {
                const own = byId.get(held.id)
                return own === undefined ? [] : [[held, own] as const]
              }),
              totals
            )
          ),
          all.map(() => undefined)
        )
      },
      ({ chainId }) => chainId
    )
    return (given: Change): Effect.Effect<void, BudgetsError> =>
      given.ids.length === 0 ? Effect.void : run(given)
  }

  const settle = changing("first", (holds, totals) =>
    rows.land(
      "settled",
      holds.map(([held, { cost }]) => {
        const costOf = (wei: bigint) => (cost === "held" ? wei : (cost ?? held.landed ?? 0n))
        Holds.shift(totals, held, null)
        let most = 0n
        for (const [name, { wei }] of held.parts) {
          const own = totals.get(name)
          if (own !== undefined) Totals.book(own, held, costOf(wei))
          most = BigInts.max(most, costOf(wei))
        }
        return [held, most] as const
      })
    )
  )

  const land = changing("last", (holds, totals) =>
    rows.land(
      null,
      holds.map(([held, { cost }]) => {
        const landed = typeof cost === "bigint" ? cost : null
        Holds.shift(totals, held, { ...held, landed })
        return [held, landed] as const
      })
    )
  )

  const release = changing("first", (holds, totals) => {
    const gone = holds.flatMap(([held]) => (held.state === "reserved" ? [held] : []))
    for (const held of gone) Holds.shift(totals, held, null)
    return rows.remove(gone)
  })

  const bind = together(
    (all: ReadonlyArray<Bind>, chainId: bigint) =>
      answered(Store.transaction(sql))(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const found = yield* rows.find(
            chainId,
            all.map(([{ id }]) => id)
          )
          const byId = new Map(found.map((held) => [held.id, held]))
          const terms = new Map<Holds.Held, HoldRows.Terms>()
          const bound = all.map(([hold, note]) => {
            const held = byId.get(hold.id)
            if (held === undefined || Holds.isOver(held, now) || !meets(held, hold)) return false
            const before = terms.get(held)
            const { due = 0n } = hold
            const least = before === undefined || due < before.due ? due : before.due
            terms.set(held, { notes: new Set([...(before?.notes ?? held.notes), note]), due: least })
            return true
          })
          yield* rows.bind([...terms])
          return bound
        })
      ),
    ([{ chainId }]) => chainId
  )

  return {
    reserve,
    settle: (chainId, id, cost) => settle({ chainId, ids: [id], cost }),
    bind: (...call) => bind(call),
    release: (chainId, ids) => release({ chainId, ids }),
    land: (chainId, id, cost) => land({ chainId, ids: [id], cost }),
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
            holds: rows.flatMap((row) => Holds.each(Holds.heldOf(row))),
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
          const totals = yield* Totals.read(store, [budget], [last, ...over], [window])
          for (const held of over) Holds.shift(totals, held, null)
          const own = totals.get(Totals.nameOf(budget))
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
