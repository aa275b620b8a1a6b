import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Reactivity from "effect/reactivity/Reactivity"
import { SqlClient } from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import * as Postgres from "../../../../src/adapters/sql/postgres/Postgres.js"
import * as ServerClock from "../../../../src/adapters/sql/postgres/ServerClock.js"
import * as Config from "../../../../src/hosts/config/Config.js"
import * as Wiring from "../../../../src/hosts/Wiring.js"
import * as Log from "../../../support/Log.js"
import * as PostgresServer from "../../../support/postgres/Postgres.js"
import * as SetClock from "../../../support/SetClock.js"

const databases = PostgresServer.perFile()
const hour = 3_600_000
const day = 24 * hour

/** A database whose server says that it is later than it is, by the milliseconds of its table. */
const shifted = Effect.gen(function* () {
  const address = yield* databases.fresh
  const open = Effect.provide(Postgres.make(address), Reactivity.layer)
  const admin = yield* open
  const [at] = yield* admin<{ readonly name: string }>`select current_database() as name`
  yield* admin`create schema clocks`
  yield* admin`create table clocks.shift as select 0::bigint as millis`
  yield* admin`create function clocks.clock_timestamp() returns timestamptz language sql as
    'select pg_catalog.clock_timestamp() + millis * interval ''1 millisecond'' from clocks.shift'`
  yield* admin`alter database ${admin(at?.name ?? "")} set search_path = clocks, pg_catalog, public`
  const by = (millis: number) => admin`update clocks.shift set millis = ${millis}`
  return { address, by, sql: yield* open }
})

const timeOf = (sql: SqlClient) =>
  Effect.map(
    sql<{ readonly millis: number }>`
      select (extract(epoch from clock_timestamp()) * 1000)::bigint as millis`,
    ([row]) => row?.millis ?? Number.NaN
  )

/** Hours that the clock is ahead of the server's. */
const hoursAhead = (sql: SqlClient) =>
  Effect.map(
    Effect.zip(Clock.currentTimeMillis, timeOf(sql)),
    ([own, server]) => Math.round((own - server) / hour) || 0
  )

const timed = (sql: SqlClient) => Layer.provide(ServerClock.layer, Layer.succeed(SqlClient, sql))

describe("the clock of a PostgreSQL server", () => {
  for (const days of [31, -31])
    it.live(`sets the layers above it, on a machine whose clock is ahead by ${days} days`, () =>
      Effect.gen(function* () {
        const log = Log.make()
        const { sql } = yield* shifted
        expect(yield* SetClock.by(days * day)(hoursAhead(sql))).toBe(days * 24)
        const ahead = yield* hoursAhead(sql).pipe(
          Effect.provide(timed(sql)),
          Effect.provide(log.layer),
          SetClock.by(days * day)
        )
        expect(ahead).toBe(0)
        const [line, ...others] = log.lines
        expect([line?.level, line?.message, others]).toEqual([
          "WARN",
          "clock differs from the database's, whose time applies",
          []
        ])
        expect(Math.round(Number(line?.annotations.aheadMillis) / hour)).toBe(days * 24)
      })
    )

  it.live("is not reported where it agrees with the machine's clock", () =>
    Effect.gen(function* () {
      const log = Log.make()
      const { sql } = yield* shifted
      expect(yield* Effect.provide(hoursAhead(sql), Layer.provide(timed(sql), log.layer))).toBe(0)
      expect(log.lines).toEqual([])
    })
  )

  it.effect("is followed when it is set, and advances evenly while the server is away", () =>
    Effect.gen(function* () {
      const { by, sql } = yield* shifted
      const machine = yield* TestClock.testClockWith(Effect.succeed)
      yield* Effect.gen(function* () {
        yield* by(5 * hour)
        expect(yield* hoursAhead(sql)).toBe(-5)
        yield* machine.adjust("10 seconds")
        yield* Effect.repeat(hoursAhead(sql), { until: (hours) => hours === 0 })

        yield* sql`alter table clocks.shift rename to away`
        const before = yield* Clock.currentTimeMillis
        yield* machine.adjust("1 hour")
        expect((yield* Clock.currentTimeMillis) - before).toBe(hour)
        yield* sql`alter table clocks.away rename to shift`
        yield* by(0)
        yield* machine.adjust("10 seconds")
        yield* Effect.repeat(hoursAhead(sql), { until: (hours) => hours === 0 })
      }).pipe(Effect.provide(timed(sql)))
    })
  )

  it.live("is that of a service on PostgreSQL", () =>
    Effect.gen(function* () {
      const { address, by, sql } = yield* shifted
      yield* by(5 * hour)
      const config = Result.getOrThrow(
        Config.fromText(
          JSON.stringify({
            profile: "development",
            listen: { host: "127.0.0.1", port: 0 },
            database: { url: { env: "DATABASE" } },
            keyPepper: "a pepper of many bytes",
            accounts: [],
            networks: []
          }),
          "castellan.json",
          { DATABASE: Redacted.value(address.url) },
          "/"
        )
      )
      const ahead = yield* Effect.provide(hoursAhead(sql), Wiring.layer(config))
      expect(ahead).toBe(0)
    })
  )
})
