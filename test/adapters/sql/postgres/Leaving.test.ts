import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as SqlClient from "effect/sql/SqlClient"
import pg from "pg"
import * as Postgres from "../../../../src/adapters/sql/postgres/Postgres.js"
import * as PostgresServer from "../../../support/postgres/Postgres.js"

const databases = PostgresServer.perFile()

/** A connection outside of the pool. */
const beside = ({ url }: { readonly url: Redacted.Redacted<string> }) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: Redacted.value(url) })
      await client.connect()
      const ask = (text: string) => Effect.promise(() => client.query(text))
      return { client, ask }
    }),
    ({ client }) => Effect.promise(() => client.end())
  )

/** A pool with both of its two connections open, and other connections that lock and read. */
const world = Effect.gen(function* () {
  const address = yield* databases.fresh
  const sql = yield* Effect.provide(Postgres.make({ ...address, maxConnections: 2 }), Reactivity.layer)
  yield* Effect.all([sql`select pg_sleep(0.05)`, sql`select pg_sleep(0.05)`], { concurrency: 2 })
  const [locker, looker] = [yield* beside(address), yield* beside(address)]
  const count = (where: string) =>
    Effect.map(
      looker.ask(`select 1 from pg_stat_activity where datname = current_database() and ${where}`),
      ({ rows }) => rows.length
    )
  // Loads the catalogue of the functions it calls later.
  yield* count("true")
  yield* looker.ask("select pg_advisory_lock(7), pg_advisory_unlock(7)")
  return { sql, locker, looker, count }
})

/** Until so many do this, or a second has passed where they need not come to it. */
const until = (count: Effect.Effect<number>, wanted: number, looks = 1_000) =>
  Effect.repeat(Effect.delay(count, 20), { until: (n) => n === wanted, times: looks })

const pidOf = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly pid: number }>`select pg_backend_pid() as pid`, ([row]) => row?.pid)

/** Keeps a connection from resolving pg_cancel_backend: its cancels wait until the lock ends. */
const deafen = "begin; lock table pg_proc in access exclusive mode"
const cancels = "query = 'select pg_cancel_backend($1)'"

describe("a PostgreSQL connection whose statement was abandoned", () => {
  it.live("is not reused while its cancel may still be on its way", () =>
    Effect.gen(function* () {
      const { count, locker, looker, sql } = yield* world
      yield* looker.ask("select pg_advisory_lock(7)")
      const given = yield* Effect.forkChild(sql`select pg_advisory_lock(7)`)
      yield* until(count("wait_event = 'advisory'"), 1)
      yield* locker.ask(deafen)
      const giving = yield* Effect.forkChild(Fiber.interrupt(given))
      yield* until(count(`${cancels} and wait_event_type = 'Lock'`), 1)
      yield* looker.ask("select pg_advisory_unlock(7)")
      yield* until(count("wait_event = 'advisory'"), 0)
      const next = yield* Effect.forkChild(sql`select pg_sleep(1)`)
      yield* until(count("state = 'active' and query = 'select pg_sleep(1)'"), 1, 20)
      yield* locker.ask("commit")
      expect((yield* Fiber.await(next))._tag).toBe("Success")
      yield* Fiber.join(giving)
    })
  )

  it.live("is closed when the server does not confirm the cancel in time", () =>
    Effect.gen(function* () {
      const { count, locker, looker, sql } = yield* world
      yield* looker.ask("select pg_advisory_lock(7)")
      const given = yield* Effect.forkChild(sql.withTransaction(sql`select pg_advisory_xact_lock(7)`))
      yield* until(count("wait_event = 'advisory'"), 1)
      yield* locker.ask(deafen)
      const giving = yield* Effect.forkChild(Fiber.interrupt(given))
      yield* until(count(`${cancels} and wait_event_type = 'Lock'`), 1)
      yield* Effect.sleep("5.2 seconds")
      yield* looker.ask("select pg_advisory_unlock(7)")
      yield* Fiber.join(giving)
      const next = yield* Effect.forkChild(sql`select pg_sleep(1)`)
      yield* until(count("state = 'active' and query = 'select pg_sleep(1)'"), 1, 20)
      yield* locker.ask("commit")
      expect((yield* Fiber.await(next))._tag).toBe("Success")
    })
  )

  it.live("stays with the interrupting fiber until its statement ends", () =>
    Effect.gen(function* () {
      const { count, sql } = yield* world
      const stubborn =
        "begin perform pg_sleep(20); exception when query_canceled then perform pg_sleep(1); end"
      const given = yield* Effect.forkChild(sql.unsafe(`do $$ ${stubborn} $$`))
      yield* until(count("wait_event = 'PgSleep'"), 1)
      yield* Fiber.interrupt(given)
      expect(yield* count("wait_event = 'PgSleep'")).toBe(0)
      yield* pidOf(sql)
    })
  )
})

describe("a connection that the server ends", () => {
  it.live("together with a reply is not handed to the next waiter", () =>
    Effect.gen(function* () {
      const { count, looker, sql } = yield* world
      const held = yield* Effect.forEach([1, 2], () => Effect.forkChild(sql`select pg_sleep(1)`))
      yield* until(count("wait_event = 'PgSleep'"), 2)
      const next = yield* Effect.forkChild(pidOf(sql))
      yield* Effect.yieldNow
      yield* looker.ask(
        "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep' limit 1"
      )
      expect((yield* Fiber.await(next))._tag).toBe("Success")
      yield* Effect.forEach(held, Fiber.await)
    })
  )

  it.live("is closed to a fiber that outlives the transaction it was started in", () =>
    Effect.gen(function* () {
      const { sql } = yield* world
      yield* sql`create table t (n integer)`
      const open = yield* Deferred.make<void>()
      const late = (effect: Effect.Effect<unknown, unknown>) =>
        Effect.forkScoped(Effect.exit(Effect.andThen(Deferred.await(open), effect)))
      const own = [
        yield* sql.withTransaction(late(sql`insert into t (n) values (1)`)),
        yield* sql.withTransaction(late(sql.withTransaction(sql`insert into t (n) values (2)`)))
      ]
      // The connection's next user would commit these writes.
      const others = sql.withTransaction(
        Effect.andThen(Deferred.succeed(open, undefined), Effect.forEach(own, Fiber.join))
      )
      expect((yield* others).map(({ _tag }) => _tag)).toEqual(["Failure", "Failure"])
      expect(yield* sql`select n from t`).toEqual([])
    })
  )
})
