import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Sqlite from "../../src/adapters/sql/sqlite/Sqlite.js"
import * as SqlAccountStore from "../../src/adapters/sql/TenantStore.js"
import { TenantStore } from "../../src/application/ports/TenantStore.js"
import { temporaryFolder } from "../support/journal/Layers.js"
import { alice } from "../support/journal/Make.js"
import * as PostgresServer from "../support/postgres/Postgres.js"
import { suite } from "./AccountStore.suite.js"

const databases = PostgresServer.perFile()

const on = <E>(client: Layer.Layer<SqlClient.SqlClient, E>) =>
  Layer.fresh(SqlAccountStore.layer.pipe(Layer.provideMerge(client), Layer.orDie))

suite(
  "SQLite",
  Layer.unwrap(
    Effect.map(temporaryFolder, (folder) => on(Sqlite.layer({ filename: join(folder, "castellan.db") })))
  )
)
suite("PostgreSQL", on(databases.layer))

describe("the SQL store of accounts", () => {
  it.effect("a failure of the store names no SQL and no data", () =>
    Effect.gen(function* () {
      const store = yield* TenantStore
      const sql = yield* SqlClient.SqlClient
      yield* sql`drop table account_changes`
      const change = store.createAccount({ accountId: alice, name: "n", tier: "pro", createdAt: 1 })
      for (const failing of [Effect.asVoid(store.version), change]) {
        const error = yield* Effect.flip(failing)
        expect(error.reason).toBe("unavailable")
        expect(error.message).toMatch(/^the store of accounts failed( \([A-Z_]+\))?$/)
      }
    }).pipe(Effect.provide(on(Sqlite.layer({ filename: ":memory:" }))))
  )
})
