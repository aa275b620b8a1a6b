import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as RedisRateLimit from "../src/adapters/redis/RateLimit.js"
import * as AccountStore from "../src/adapters/sql/AccountStore.js"
import * as Postgres from "../src/adapters/sql/Postgres.js"
import * as SqlRateLimit from "../src/adapters/sql/RateLimit.js"
import * as Sqlite from "../src/adapters/sql/Sqlite.js"
import * as Directory from "../src/application/account/Directory.js"
import { AccountStore as AccountStorePort } from "../src/application/ports/AccountStore.js"
import type { AccountId } from "../src/application/ports/Accounts.js"
import { RateLimit } from "../src/application/ports/RateLimit.js"

/**
 * What it costs to find out who holds a key: by a look-up in the database for each request, and by the directory, which
 * asks for the version of the accounts twice a second. 10,000 accounts, 20,000 keys. And what a count costs.
 * `npx tsx bench/accounts.ts`; with POSTGRES_URL (an empty database) and REDIS_URL it measures these as well.
 */
const accounts = 10_000

const hash = (name: string) => name.padStart(64, "0")

const fill = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const numbers = Array.from({ length: accounts }, (_, n) => n)
  for (let at = 0; at < accounts; at += 500) {
    const chunk = numbers.slice(at, at + 500)
    yield* sql`insert into accounts ${sql.insert(
      chunk.map((n) => ({ account_id: `a${n}`, name: `Account ${n}`, tier: "pro", created_at: 1 }))
    )}`
    const keys = chunk.flatMap((n) =>
      [2 * n, 2 * n + 1].map((key) => ({
        hash: hash(String(key)),
        account_id: `a${n}`,
        scopes: "read write sign",
        origin: "command",
        issued_at: 1
      }))
    )
    yield* sql`insert into api_keys ${sql.insert(keys)}`
  }
})

/** Microseconds. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<number, E, R> =>
  Effect.map(Effect.timed(effect), ([duration]) => Duration.toMillis(duration) * 1_000)

const each = (times: number, concurrency: number, one: (n: number) => Effect.Effect<unknown, unknown>) =>
  Effect.map(
    timed(
      Effect.forEach(
        Array.from({ length: times }, (_, n) => n),
        one,
        { concurrency, discard: true }
      )
    ),
    (micros) => (micros / times).toFixed(1)
  )

const measure = (name: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* fill
    const lookUp = (n: number) => sql`
      select a.account_id, a.name, a.tier, k.scopes, k.ends_at from api_keys k
      join accounts a on a.account_id = k.account_id where k.hash = ${hash(String(n))}`
    const store = yield* AccountStorePort
    const reload = yield* timed(store.content)
    const directory = yield* Directory.make({ hash: (key) => hash(Redacted.value(key)), accounts: [] })
    const known = (n: number) => directory.authenticate(Redacted.make(String(n)))
    yield* each(2_000, 50, lookUp)
    yield* each(2_000, 50, known)
    console.log(
      `${name}: look-up ${yield* each(4_000, 50, lookUp)} us a request, directory ${yield* each(40_000, 50, known)} us; all accounts read in ${(reload / 1_000).toFixed(0)} ms after a change`
    )
    const limiter = yield* SqlRateLimit.make
    const count = (n: number) => limiter.take(`a${n % 50}` as AccountId, "enterprise")
    console.log(`${name}: a count ${yield* each(2_000, 50, count)} us`)
  }).pipe(Effect.scoped)

const on = <E>(client: Layer.Layer<SqlClient.SqlClient, E>) =>
  AccountStore.layer.pipe(Layer.provideMerge(client))

const folder = mkdtempSync(join(tmpdir(), "castellan-bench-"))
const sqlite = on(Sqlite.layer({ filename: join(folder, "bench.sqlite") }))
await Effect.runPromise(Effect.provide(measure("SQLite"), sqlite))
rmSync(folder, { recursive: true, force: true })

const { POSTGRES_URL, REDIS_URL } = process.env
if (POSTGRES_URL !== undefined)
  await Effect.runPromise(
    Effect.provide(measure("PostgreSQL"), on(Postgres.layer({ url: Redacted.make(POSTGRES_URL) })))
  )
if (REDIS_URL !== undefined)
  await Effect.runPromise(
    Effect.gen(function* () {
      const limiter = yield* RateLimit
      const count = (n: number) => limiter.take(`a${n % 50}` as AccountId, "enterprise")
      console.log(`Redis: a count ${yield* each(5_000, 50, count)} us`)
    }).pipe(
      Effect.provide(RedisRateLimit.layer({ url: Redacted.make(REDIS_URL), commandTimeoutMillis: 5_000 }))
    )
  )
