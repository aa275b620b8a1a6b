import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import { SqlError } from "effect/sql/SqlError"
import * as Migrations from "../../../../src/adapters/sql/Migrations.js"
import * as Postgres from "../../../../src/adapters/sql/postgres/Postgres.js"
import * as Store from "../../../../src/adapters/sql/Store.js"
import { JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import { options } from "../../../support/journal/Layers.js"
import * as PostgresServer from "../../../support/postgres/Postgres.js"
import * as TcpProxy from "../../../support/process/TcpProxy.js"

const databases = PostgresServer.alone()
const open = (options: Postgres.Options) => Effect.provide(Postgres.make(options), Reactivity.layer)
const client = Effect.flatMap(databases.fresh, open)

describe("the PostgreSQL client", () => {
  it.effect(
    "a commit is on the disk when it returns, and a statement writes, whatever the database's settings",
    () =>
      Effect.gen(function* () {
        const options = yield* databases.fresh
        const admin = yield* open(options)
        const [at] = yield* admin<{ readonly name: string }>`select current_database() as name`
        const name = admin(at?.name ?? "")
        yield* admin`alter database ${name} set synchronous_commit = off`
        yield* admin`alter database ${name} set default_transaction_isolation = 'serializable'`
        yield* admin`alter database ${name} set default_transaction_read_only = on`
        const sql = yield* open(options)
        expect(yield* sql`show synchronous_commit`).toEqual([{ synchronous_commit: "off" }])
        const inside = sql.withTransaction(
          Effect.all([
            sql`show synchronous_commit`,
            sql`show transaction_isolation`,
            sql`show transaction_read_only`
          ])
        )
        expect(yield* inside).toEqual([
          [{ synchronous_commit: "on" }],
          [{ transaction_isolation: "read committed" }],
          [{ transaction_read_only: "off" }]
        ])
        yield* sql`create table written (n integer)`
        expect(yield* sql`show transaction_isolation`).toEqual([{ transaction_isolation: "read committed" }])
      })
  )

  it.effect("rows have UTC times, whatever the database's time zone", () =>
    Effect.gen(function* () {
      const options = yield* databases.fresh
      const admin = yield* open(options)
      const [at] = yield* admin<{ readonly name: string }>`select current_database() as name`
      yield* admin`alter database ${admin(at?.name ?? "")} set timezone = 'Europe/Berlin'`
      const sql = yield* open(options)
      const isUtc = sql`select now()::timestamp = now() at time zone 'UTC' as utc`
      expect(yield* isUtc).toEqual([{ utc: true }])
      expect(yield* sql.withTransaction(isUtc)).toEqual([{ utc: true }])
    })
  )

  it.effect("keeps a stronger durability setting unchanged", () =>
    Effect.gen(function* () {
      const options = yield* databases.fresh
      const admin = yield* open(options)
      const [at] = yield* admin<{ readonly name: string }>`select current_database() as name`
      yield* admin`alter database ${admin(at?.name ?? "")} set synchronous_commit = remote_apply`
      const sql = yield* open(options)
      expect(yield* sql.withTransaction(sql`show synchronous_commit`)).toEqual([
        { synchronous_commit: "remote_apply" }
      ])
    })
  )

  it.effect("commits survive a crash of the server, and the client reconnects after it", () =>
    Effect.gen(function* () {
      const sql = yield* client
      const server = yield* databases.server
      yield* sql`create table t (n integer)`
      yield* sql.withTransaction(sql`insert into t (n) values (1)`)
      const cut = yield* Effect.exit(
        sql.withTransaction(
          Effect.andThen(sql`insert into t (n) values (2)`, Effect.promise(server.crash)).pipe(
            Effect.andThen(sql`insert into t (n) values (3)`)
          )
        )
      )
      expect(Exit.isFailure(cut)).toBe(true)
      expect(yield* sql`select n from t order by n`).toEqual([{ n: 1 }])
      yield* sql.withTransaction(sql`insert into t (n) values (4)`)
      expect(yield* sql`select n from t order by n`).toEqual([{ n: 1 }, { n: 4 }])
    })
  )

  it.effect("a transaction with a failed statement never counts as committed", () =>
    Effect.gen(function* () {
      const sql = yield* client
      yield* sql`create table t (n integer unique)`
      const body = sql`insert into t (n) values (1)`.pipe(
        Effect.andThen(Effect.ignore(sql`insert into t (n) values (1)`))
      )
      const exit = yield* Effect.exit(sql.withTransaction(body))
      if (Exit.isSuccess(exit)) return expect.fail("the commit seemed to succeed")
      expect(Cause.squash(exit.cause)).toBeInstanceOf(SqlError)
      expect(yield* Effect.flip(Store.make(sql, options).transaction(body))).toBeInstanceOf(JournalError)
      expect(yield* sql`select n from t`).toEqual([])
    })
  )

  it.effect("an interrupted transaction writes nothing and frees its connection", () =>
    Effect.gen(function* () {
      const sql = yield* open({ ...(yield* databases.fresh), maxConnections: 2 })
      yield* sql`create table t (n integer)`
      for (let round = 0; round < 5; round++) {
        const begun = yield* Deferred.make<void>()
        const fiber = yield* sql
          .withTransaction(
            sql`insert into t (n) values (1)`.pipe(
              Effect.andThen(Deferred.succeed(begun, undefined)),
              Effect.andThen(sql`select pg_sleep(2)`)
            )
          )
          .pipe(Effect.forkChild)
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
      }
      yield* sql.withTransaction(sql`insert into t (n) values (2)`)
      expect(yield* sql`select n from t`).toEqual([{ n: 2 }])
      const open_ = yield* sql<{ readonly n: number }>`
        select count(*) as n from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%'`
      expect(open_).toEqual([{ n: 0 }])
    })
  )

  it.effect("a transaction that waited for a lock sees the holder's writes", () =>
    Effect.gen(function* () {
      const sql = yield* client
      const { lock, transaction } = Store.make(sql, options)
      yield* sql`create table t (n integer)`
      yield* sql`insert into t (n) values (0)`
      const increment = transaction(
        Effect.gen(function* () {
          yield* lock("counter")
          const [row] = yield* sql<{ readonly n: number }>`select n from t`
          yield* sql`update t set n = ${(row?.n ?? 0) + 1}`
        })
      )
      yield* Effect.all(
        Array.from({ length: 100 }, () => increment),
        { concurrency: "unbounded" }
      )
      expect(yield* sql`select n from t`).toEqual([{ n: 100 }])
    })
  )

  it.effect("a wait for a lock that is never released ends", () =>
    Effect.gen(function* () {
      const sql = yield* client
      const { lock, transaction } = Store.make(sql, options)
      const held = yield* Deferred.make<void>()
      const released = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        transaction(
          lock("lane").pipe(
            Effect.andThen(Deferred.succeed(held, undefined)),
            Effect.andThen(Deferred.await(released))
          )
        )
      )
      yield* Deferred.await(held)
      const error = yield* Effect.flip(
        transaction(Effect.andThen(sql`set local lock_timeout = '10ms'`, lock("lane")))
      )
      expect(error.message).toContain("55P03")
      yield* transaction(lock("another lane"))
      yield* Deferred.succeed(released, undefined)
      yield* Fiber.join(holder)
      yield* transaction(lock("lane"))
      const limits = sql.withTransaction(
        Effect.all([
          sql`show lock_timeout`,
          sql`show statement_timeout`,
          sql`show idle_in_transaction_session_timeout`
        ])
      )
      expect(yield* limits).toEqual([
        [{ lock_timeout: "10s" }],
        [{ statement_timeout: "14s" }],
        [{ idle_in_transaction_session_timeout: "5s" }]
      ])
    })
  )

  it.live("a statement that the network has lost fails, and the next statement gets a new connection", () =>
    Effect.gen(function* () {
      const options = yield* databases.fresh
      const { port } = yield* databases.server
      const wire = yield* Effect.acquireRelease(
        Effect.promise(() => TcpProxy.start({ host: "127.0.0.1", port })),
        ({ stop }) => Effect.promise(stop)
      )
      const url = new URL(Redacted.value(options.url))
      url.port = String(wire.port)
      const sql = yield* open({
        url: Redacted.make(url.href),
        maxConnections: 2,
        connectTimeoutMillis: 1_000,
        answerTimeoutMillis: 2_000
      })
      const pid = sql<{ readonly pid: number }>`select pg_backend_pid() as pid`
      yield* sql`create table t (n integer)`
      const inside = Effect.andThen(Effect.sync(wire.cut), sql`insert into t (n) values (1)`)
      const begun = performance.now()
      const lost = yield* Effect.exit(sql.withTransaction(inside))
      // Right after the 2 s limit for a reply: no caller waits for the cut connection.
      expect(performance.now() - begun).toBeLessThan(5_000)
      expect(Exit.isFailure(lost)).toBe(true)
      expect(Exit.isFailure(yield* Effect.exit(pid))).toBe(true)
      expect(Exit.isFailure(yield* Effect.exit(pid))).toBe(true)
      wire.mend()
      expect(yield* sql`select n from t`).toEqual([])
      yield* sql.withTransaction(sql`insert into t (n) values (2)`)
      expect(yield* sql`select n from t`).toEqual([{ n: 2 }])
    })
  )

  it.live("a caller that waits too long for a free connection fails, and the holders keep theirs", () =>
    Effect.gen(function* () {
      const sql = yield* open({
        ...(yield* databases.fresh),
        maxConnections: 2,
        connectTimeoutMillis: 1_000
      })
      const released = yield* Deferred.make<void>()
      const held = yield* Effect.forEach([0, 1], () => Deferred.make<void>())
      const holders = yield* Effect.forEach(held, (each) =>
        Effect.forkChild(
          sql.withTransaction(Effect.andThen(Deferred.succeed(each, undefined), Deferred.await(released)))
        )
      )
      yield* Effect.forEach(held, Deferred.await)
      expect(Exit.isFailure(yield* Effect.exit(sql`select 1`))).toBe(true)
      yield* Deferred.succeed(released, undefined)
      yield* Effect.forEach(holders, Fiber.join)
      expect(yield* sql`select 1 as n`).toEqual([{ n: 1 }])
    })
  )

  it.effect("integers are numbers as on SQLite; those beyond 2^53 are text, exactly", () =>
    Effect.gen(function* () {
      const sql = yield* client
      const rows = yield* sql`
        select 7::smallint as a, -8::integer as b, 1700000000000::bigint as c, 9007199254740993::bigint as d,
          count(*) as e, null::bigint as f, true as g, '0012' as h, 1.50::numeric as i
        from pg_database where false`
      expect(rows).toEqual([
        {
          a: 7,
          b: -8,
          c: 1_700_000_000_000,
          d: "9007199254740993",
          e: 0,
          f: null,
          g: true,
          h: "0012",
          i: "1.50"
        }
      ])
    })
  )

  it.effect("a connection reads rows of many megabytes and keeps working", () =>
    Effect.gen(function* () {
      const sql = yield* client
      const long = "x".repeat(12_000_000)
      yield* sql`create table t (n integer, one text, other text)`
      yield* sql`insert into t (n, one, other) values (1, ${long}, ${long})`
      const [row] = yield* sql<{ readonly one: string; readonly other: string }>`select one, other from t`
      expect([row?.one.length, row?.other.length]).toEqual([long.length, long.length])
      expect(yield* sql`select n from t`).toEqual([{ n: 1 }])
    })
  )

  it.effect("several processes that start together migrate the schema once", () =>
    Effect.gen(function* () {
      const options = yield* databases.fresh
      const start = Effect.scoped(
        Effect.flatMap(open(options), (sql) =>
          Effect.provideService(Migrations.run, SqlClient.SqlClient, sql)
        )
      )
      yield* Effect.all([start, start, start, start], { concurrency: "unbounded" })
      const sql = yield* open(options)
      const rows = yield* sql<{ readonly name: string }>`select name from castellan_migrations order by 1`
      expect(rows.map(({ name }) => name)).toContain("schema")
    })
  )

  it.effect("an unusable server is a typed failure that shows only its host", () =>
    Effect.gen(function* () {
      const { password, port } = yield* databases.server
      const at = (user: string, key: string, database: string, where = port) =>
        Redacted.make(`postgres://${user}:${key}@127.0.0.1:${where}/${database}`)
      const here = "127.0.0.1"
      for (const [options, shown] of [
        [{ url: at("postgres", "wrong-secret", "postgres") }, [here, "28P01"]],
        [{ url: at("postgres", password, "missing") }, [here, "3D000"]],
        [{ url: at("postgres", password, "postgres", 1) }, [here, "ECONNREFUSED"]],
        [{ url: Redacted.make(`mysql://postgres:${password}@127.0.0.1/x`) }, ["not one of PostgreSQL"]],
        [
          { url: Redacted.make(`postgres://postgres:${password}@127.0.0.1:port/x`) },
          ["not one of PostgreSQL"]
        ],
        [
          {
            host: "127.0.0.1",
            port,
            user: "postgres",
            password: Redacted.make("wrong-secret"),
            database: "x"
          },
          [here, "28P01"]
        ]
      ] as const) {
        const error = yield* Effect.flip(open(options))
        expect(error._tag).toBe("PostgresError")
        for (const text of shown) expect(error.message).toContain(text)
        for (const secret of [password, "wrong-secret", "missing"])
          expect(error.message).not.toContain(secret)
      }
    })
  )

  it.effect("host, user, password and database work like a URL", () =>
    Effect.gen(function* () {
      const { password, port } = yield* databases.server
      const sql = yield* open({
        host: "127.0.0.1",
        port,
        user: "postgres",
        password: Redacted.make(password),
        database: "postgres"
      })
      expect(yield* sql`select current_database() as at`).toEqual([{ at: "postgres" }])
    })
  )

  it.effect("a server that does not write to the disk is refused", () =>
    Effect.gen(function* () {
      const options = yield* databases.fresh
      const sql = yield* open(options)
      const set = (value: string) =>
        Effect.gen(function* () {
          yield* sql`alter system set fsync = ${sql.literal(value)}`
          yield* sql`select pg_reload_conf()`
          yield* sql<{ readonly fsync: string }>`show fsync`.pipe(
            Effect.repeat({ until: ([row]) => row?.fsync === value, times: 10_000 })
          )
        })
      yield* set("off")
      const error = yield* Effect.flip(open(options))
      yield* set("on")
      expect(error.message).toContain("does not write commits to the disk")
      yield* open(options)
    })
  )
})
