import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as ErrorCode from "../../../../src/adapters/sql/ErrorCode.js"
import * as Postgres from "../../../../src/adapters/sql/postgres/Postgres.js"
import * as Store from "../../../../src/adapters/sql/Store.js"
import * as Layers from "../../../support/journal/Layers.js"
import * as Meanwhile from "../../../support/postgres/Meanwhile.js"
import * as PostgresServer from "../../../support/postgres/Postgres.js"

const databases = PostgresServer.perFile()

const clientOf = (address: Postgres.Options) =>
  Effect.flatMap(Effect.provide(Postgres.make(address), Reactivity.layer), (sql) =>
    Store.isPostgres(sql) ? Effect.succeed(sql) : Effect.die(new Error("no client of PostgreSQL"))
  )

/** A client of a database with one table of distinct numbers. */
const numbers = Effect.gen(function* () {
  const address = { ...(yield* databases.fresh), maxConnections: 2 }
  const sql = yield* clientOf(address)
  yield* sql`create table t (n integer unique)`
  const insert = (n: number) => sql<{ readonly n: number }>`insert into t (n) values (${n}) returning n`
  const all = Effect.map(sql<{ readonly n: number }>`select n from t order by n`, (rows) =>
    rows.map(({ n }) => n)
  )
  return { address, sql, insert, all }
})

describe("a transaction of PostgreSQL", () => {
  it.effect("fails with the error of the refused statement, whatever follows it", () =>
    Effect.gen(function* () {
      const { all, insert, sql } = yield* numbers
      yield* insert(1)
      const then = sql.withTransaction(Effect.andThen(insert(1), insert(3)))
      expect(ErrorCode.suffix(yield* Effect.flip(then))).toBe(" (23505)")
      // Committing a refused transaction commits no row.
      const ignored = sql.withTransaction(Effect.ignore(insert(1)))
      expect(ErrorCode.suffix(yield* Effect.flip(ignored))).toBe(" (25P02)")
      yield* sql.withTransaction(insert(4))
      expect(yield* all).toEqual([1, 4])
    })
  )

  it.effect("is lost with its connection, as a failure", () =>
    Effect.gen(function* () {
      const { address, all, insert, sql } = yield* numbers
      const other = yield* clientOf(address)
      // On a separate fiber: every statement of this fiber belongs to its transaction.
      const end = (pid: number) =>
        Effect.promise(() => Effect.runPromise(other`select pg_terminate_backend(${pid})`))
      const cut = sql.withTransaction(
        Effect.gen(function* () {
          const [row] = yield* sql<{ readonly pid: number }>`select pg_backend_pid() as pid`
          yield* insert(1)
          yield* end(row?.pid ?? 0)
          yield* insert(2)
        })
      )
      expect((yield* Effect.flip(cut))._tag).toBe("SqlError")
      expect(yield* all).toEqual([])
    })
  )

  it.effect("a transaction with a failed part continues without that part's writes", () =>
    Effect.gen(function* () {
      const { all, insert, sql } = yield* numbers
      yield* insert(1)
      const part = Effect.ignore(sql.withTransaction(Effect.andThen(insert(2), insert(1))))
      const bad = sql.withTransaction(Effect.andThen(part, sql`select 1 / 0`))
      expect(ErrorCode.suffix(yield* Effect.flip(bad))).toBe(" (22012)")
      yield* sql.withTransaction(Effect.andThen(part, insert(3)))
      expect(yield* all).toEqual([1, 3])
    })
  )

  it.effect("may have several parts at a time, each undone for itself", () =>
    Effect.gen(function* () {
      const { all, insert, sql } = yield* numbers
      const part = (n: number) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* insert(n)
              if (n % 2 === 0) return yield* Effect.fail("no")
              yield* insert(10 + n)
            })
          )
          .pipe(Effect.ignore)
      yield* sql.withTransaction(Effect.forEach([0, 1, 2, 3], part, { concurrency: "unbounded" }))
      expect(yield* all).toEqual([1, 3, 11, 13])
    })
  )

  it.effect("distinguishes serialization conflicts from permanent failures", () =>
    Effect.gen(function* () {
      const { all, insert, sql } = yield* numbers
      yield* sql.withTransaction(Effect.andThen(insert(1), insert(2)))
      const change = (n: number, by: number) => sql`update t set n = ${n + by} where n = ${n}`
      const both = yield* Effect.forEach([0, 1], () => Deferred.make<void>())
      const tries = [0, 0]
      const crossed = (own: number, first: number, second: number) =>
        Effect.gen(function* () {
          tries[own] = (tries[own] ?? 0) + 1
          yield* change(first, 10 * (own + 1))
          yield* Deferred.succeed(both[own] as Deferred.Deferred<void>, undefined)
          yield* Deferred.await(both[1 - own] as Deferred.Deferred<void>)
          yield* change(second, 10 * (own + 1))
        })
      const { transaction } = Store.make(sql, Layers.options)
      yield* Effect.all([transaction(crossed(0, 1, 2)), transaction(crossed(1, 2, 1))], {
        concurrency: "unbounded"
      })
      // At least one was in the way and went again; how often is up to the server.
      expect(Math.max(...tries)).toBeGreaterThan(1)
      expect((yield* all).length).toBe(2)
    })
  )
})

describe("a transaction of PostgreSQL that locks names", () => {
  it.effect("begins when every named lock is free, and sees the writes of their former holders", () =>
    Effect.gen(function* () {
      const { address, all, insert, sql } = yield* numbers
      const other = yield* clientOf(address)
      const seen = yield* Meanwhile.changed(other, sql, {
        lock: other.locking(["b"])(Effect.void),
        method: sql.locking(["c", "b", "a"])(all),
        change: insert(1)
      })
      expect(seen).toEqual([1])
    })
  )

  it.effect("an interrupted waiter gives up its lock", () =>
    Effect.gen(function* () {
      const { address, all, insert, sql } = yield* numbers
      const other = yield* clientOf(address)
      const [held, released] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.forkChild(
        other.locking(["a"])(Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(released)))
      )
      yield* Deferred.await(held)
      const waiter = yield* Effect.forkChild(sql.locking(["a"])(insert(2)))
      yield* Meanwhile.somebodyWaits(sql)
      yield* Fiber.interrupt(waiter)
      // A transaction that is idle for too long is ended: it would be over if the waiter had waited for it.
      yield* Deferred.succeed(released, undefined)
      yield* Fiber.join(holder)
      yield* sql.locking(["a"])(insert(1))
      expect(yield* all).toEqual([1])
    })
  )

  it.effect("may have any text as a name", () =>
    Effect.gen(function* () {
      const { all, sql } = yield* numbers
      const names = ["it's", "a\\'b", "'; drop table t; --", "$1", "ü", ""]
      yield* sql.locking(names)(
        Effect.gen(function* () {
          for (const name of names) {
            const [row] = yield* sql<{ readonly n: number }>`
              select count(*) as n from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()
                and ((classid::bigint << 32) | objid::bigint) = hashtextextended(${name}, 0)`
            expect([name, row?.n]).toEqual([name, 1])
          }
        })
      )
      expect(yield* all).toEqual([])
    })
  )
})
