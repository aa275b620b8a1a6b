import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { Redis } from "ioredis"
import * as MemoryRateLimit from "../../src/adapters/memory/RateLimit.js"
import * as RedisRateLimit from "../../src/adapters/redis/RateLimit.js"
import * as Postgres from "../../src/adapters/sql/postgres/Postgres.js"
import * as SqlRateLimit from "../../src/adapters/sql/RateLimit.js"
import { limits, RateLimit } from "../../src/application/ports/RateLimit.js"
import { alice } from "../support/journal/Make.js"
import * as PostgresServer from "../support/postgres/Postgres.js"
import * as RedisServer from "../support/redis/Redis.js"
import * as Time from "../support/Time.js"
import * as Tools from "../support/Tools.js"
import { suite } from "./RateLimit.suite.js"

const databases = PostgresServer.perFile()
let started: Promise<RedisServer.Server> | undefined
afterAll(async () => (await started)?.stop())

/** Options of a client of the file's one Redis, which is empty. */
const emptied = Effect.promise(async () => {
  await Tools.need("Redis")
  started ??= RedisServer.start()
  const { url } = await started
  const client = new Redis(url)
  await client.flushall()
  client.disconnect()
  // A loaded machine may be slow: that is not a failure of the count.
  return { url: Redacted.make(url), commandTimeoutMillis: 20_000 }
})

const onSql = <E>(client: Layer.Layer<SqlClient.SqlClient, E>): Layer.Layer<RateLimit> =>
  Layer.fresh(
    Layer.tap(SqlRateLimit.layer, () =>
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql`delete from rate_counts`)
    ).pipe(Layer.provide(client), Layer.orDie)
  )

suite("memory", Layer.fresh(MemoryRateLimit.layer))

const redisLayer = Layer.fresh(
  Layer.unwrap(Effect.map(emptied, (options) => Layer.orDie(RedisRateLimit.layer(options))))
)
suite("Redis", redisLayer)

let database: Promise<Postgres.Options> | undefined
const postgres = Layer.unwrap(
  Effect.promise(async () => {
    await Tools.need("PostgreSQL")
    database ??= Effect.runPromise(databases.fresh)
    return database
  }).pipe(Effect.map((address) => onSql(Postgres.layer(address))))
)
suite("PostgreSQL", Layer.fresh(postgres))

/** A full UTC hour. */
const noon = Date.UTC(2026, 0, 2, 12)

describe("several replicas", () => {
  /** Each with a separate connection. */
  const replicas = <E>(count: number, layer: Layer.Layer<RateLimit, E>) =>
    Effect.all(
      Array.from({ length: count }, () =>
        Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, RateLimit))
      )
    )

  const together = <E>(layer: Layer.Layer<RateLimit, E>) =>
    Effect.gen(function* () {
      yield* Time.setTime(noon)
      const services = yield* replicas(3, layer)
      const answers = yield* Effect.all(
        Array.from({ length: 200 }, (_, n) => services[n % 3]?.take(alice, limits.free) ?? Effect.never),
        { concurrency: "unbounded" }
      )
      expect(answers.filter(({ allowed }) => allowed).length).toBe(60)
      const left = answers.filter(({ allowed }) => allowed).map(({ remaining }) => remaining)
      expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n))
    }).pipe(Effect.scoped)

  it.effect("with one Redis admit together exactly the tier's limit", () =>
    Effect.flatMap(emptied, (options) => together(RedisRateLimit.layer(options)))
  )

  it.effect("with one PostgreSQL admit together exactly the tier's limit", () =>
    Effect.flatMap(databases.fresh, (address) =>
      together(SqlRateLimit.layer.pipe(Layer.provide(Layer.fresh(Postgres.layer(address)))))
    )
  )

  it.effect("a replica whose clock is behind does not reopen a window", () =>
    Effect.flatMap(databases.fresh, (address) =>
      Effect.gen(function* () {
        const limiter = yield* RateLimit
        yield* Time.setTime(noon + 60_000)
        for (let n = 0; n < 60; n++) yield* limiter.take(alice, limits.free)
        yield* Time.setTime(noon + 59_000)
        expect(yield* limiter.take(alice, limits.free)).toMatchObject({ allowed: false, remaining: 0 })
        yield* Time.setTime(noon + 60_001)
        expect(yield* limiter.take(alice, limits.free)).toMatchObject({ allowed: false, remaining: 0 })
      }).pipe(Effect.provide(SqlRateLimit.layer.pipe(Layer.provide(Postgres.layer(address)))))
    )
  )
})
