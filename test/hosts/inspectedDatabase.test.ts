import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as SqlClient from "effect/sql/SqlClient"
import * as Migrations from "../../src/adapters/sql/Migrations.js"
import * as Postgres from "../../src/adapters/sql/postgres/Postgres.js"
import * as Databases from "../support/postgres/Postgres.js"
import * as CommandLine from "../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-inspected-"))
afterAll(() => rmSync(folder, { recursive: true }))
const databases = Databases.perFile()

const check = (url: Redacted.Redacted<string>) => {
  const path = join(folder, "castellan.json")
  const file = {
    profile: "production",
    listen: { host: "127.0.0.1", port: 8080 },
    database: { url: { env: "DATABASE" } },
    keyPepper: { env: "PEPPER" },
    accounts: [],
    networks: []
  }
  writeFileSync(path, JSON.stringify(file))
  const env = { DATABASE: Redacted.value(url), PEPPER: "a pepper that only this test uses" }
  return Effect.result(CommandLine.run(["config", "check", path, "--connect"], env))
}

const tables = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly name: string }>`select tablename as name from pg_tables where schemaname = 'public'`
)

describe("castellan config check --connect on PostgreSQL", () => {
  it.effect("creates no table in an unused database", () =>
    Effect.gen(function* () {
      const address = yield* databases.fresh
      expect(Result.isSuccess(yield* check(address.url))).toBe(true)
      expect(yield* Effect.provide(tables, Postgres.layer(address))).toEqual([])
    })
  )

  it.effect("leaves an older schema unchanged, and reports a newer one", () =>
    Effect.gen(function* () {
      const address = yield* databases.fresh
      const sql = yield* Effect.provide(Migrations.client, Postgres.layer(address))
      expect(sql).toBeDefined()
      const on = <A, E>(work: Effect.Effect<A, E, SqlClient.SqlClient>) =>
        Effect.provide(work, Postgres.layer(address))
      const newest = yield* on(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql<{ readonly id: number }>`select max(migration_id) as id from castellan_migrations`
        )
      )
      const id = Number(newest[0]?.id)
      yield* on(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`delete from castellan_migrations where migration_id = ${id}`
        )
      )
      expect(Result.isSuccess(yield* check(address.url))).toBe(true)
      const after = yield* on(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql<{ readonly id: number }>`select max(migration_id) as id from castellan_migrations`
        )
      )
      expect(Number(after[0]?.id)).toBe(id - 1)
      yield* on(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`insert into castellan_migrations (migration_id, name) values (${id + 1}, 'later')`
        )
      )
      expect(yield* check(address.url)).toEqual(
        Result.fail(
          "the configuration names unusable parts:\n  database: the database was written by a newer version of the program"
        )
      )
    })
  )
})
