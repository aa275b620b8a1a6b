import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import * as Migrations from "../../src/adapters/sql/Migrations.js"
import * as Postgres from "../../src/adapters/sql/postgres/Postgres.js"
import * as Sqlite from "../../src/adapters/sql/sqlite/Sqlite.js"
import * as Config from "../../src/hosts/config/Config.js"
import * as Wiring from "../../src/hosts/Wiring.js"
import * as Databases from "../support/postgres/Postgres.js"
import * as CommandLine from "../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-older-"))
afterAll(() => rmSync(folder, { recursive: true }))
const databases = Databases.perFile()

let files = 0

interface Database {
  readonly env: ReturnType<typeof environment>
  readonly client: Layer.Layer<SqlClient.SqlClient, unknown>
}

/** A configuration over the database, with the environment that names it. */
const environment = (database: unknown, url = "") => {
  const path = join(folder, `${++files}.json`)
  const file = {
    profile: "production",
    listen: { host: "127.0.0.1", port: 8080 },
    database,
    keyPepper: { env: "PEPPER" },
    accounts: [],
    networks: []
  }
  writeFileSync(path, JSON.stringify(file))
  return { CASTELLAN_CONFIG: path, DATABASE: url, PEPPER: "a pepper that only this test uses" }
}

const onSqlite = Effect.sync(() => {
  const filename = join(folder, `${++files}.sqlite`)
  return { env: environment({ path: filename }), client: Sqlite.layer({ filename }), filename }
})

const onPostgres = Effect.map(databases.fresh, (address) => ({
  env: environment({ url: { env: "DATABASE" } }, Redacted.value(address.url)),
  client: Postgres.layer(address)
}))

/** The schema as the previous version leaves it. */
const older = Effect.gen(function* () {
  const all = Object.entries(Migrations.migrations)
  const loader = Migrator.fromRecord(Object.fromEntries(all.slice(0, -1)))
  yield* Migrator.make({})({ loader, table: "castellan_migrations" })
})

const migrations = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly count: number | string }>`select count(*) as count from castellan_migrations`
).pipe(Effect.map(([row]) => Number(row?.count)))

const known = Object.keys(Migrations.migrations).length

/** Commands that together open every port. */
const commands = [
  ["requests", "list"],
  ["lanes", "list"],
  ["audit", "list"],
  ["accounts", "list"],
  ["accounts", "create", "acme"],
  ["keys", "list"],
  ["signers", "list"],
  ["chains", "paused"],
  ["webhooks", "list"],
  ["watches", "list"],
  ["store", "confirm-clock"]
]

const engines: ReadonlyArray<readonly [string, Effect.Effect<Database, unknown>]> = [
  ["SQLite", onSqlite],
  ["PostgreSQL", onPostgres]
]

const refusal =
  "the schema of the database is an older version's: start the service of this version, which brings it up to date, or use the command of that version"

for (const [name, fresh] of engines)
  describe(`commands on a database of ${name}`, { timeout: 60_000 }, () => {
    it.effect("commands leave an older schema unchanged, and name the remedy", () =>
      Effect.gen(function* () {
        const { client, env } = yield* fresh
        yield* Effect.provide(older, client)
        for (const command of commands)
          expect(yield* Effect.flip(CommandLine.run(command, env)), command.join(" ")).toBe(refusal)
        expect(yield* Effect.provide(migrations, client)).toBe(known - 1)
      })
    )

    it.effect("commands create and then use the schema of a new database", () =>
      Effect.gen(function* () {
        const { client, env } = yield* fresh
        expect(yield* CommandLine.run(["accounts", "create", "acme"], env)).toContain("acme")
        expect(yield* Effect.provide(migrations, client)).toBe(known)
        for (const command of commands.filter((words) => words[1] !== "create"))
          yield* CommandLine.run(command, env)
      })
    )

    it.effect("commands refuse a newer schema", () =>
      Effect.gen(function* () {
        const { client, env } = yield* fresh
        yield* Effect.provide(Migrations.run, client)
        yield* Effect.provide(
          Effect.flatMap(
            SqlClient.SqlClient,
            (sql) => sql`insert into castellan_migrations (migration_id, name) values (9999, 'future')`
          ),
          client
        )
        expect(yield* Effect.flip(CommandLine.run(["requests", "list"], env))).toBe(
          "the database was written by a newer version of the program"
        )
      })
    )
  })

describe("castellan store copy", { timeout: 60_000 }, () => {
  it.effect("castellan store copy leaves an older file's schema unchanged", () =>
    Effect.gen(function* () {
      const { client, env } = yield* onSqlite
      const target = yield* onPostgres
      yield* Effect.provide(older, client)
      const copy = CommandLine.run(["store", "copy", target.env.CASTELLAN_CONFIG], {
        ...env,
        DATABASE: target.env.DATABASE
      })
      expect(yield* Effect.flip(copy)).toBe(refusal)
      expect(yield* Effect.provide(migrations, client)).toBe(known - 1)
      yield* Effect.provide(Migrations.run, client)
      expect(yield* copy).toContain("are copied")
    })
  )
})

describe("a file of SQLite that a service of the version before uses", () => {
  it.effect("a start of this version keeps the schema of a file in use by the previous version", () =>
    Effect.gen(function* () {
      const { client, env, filename } = yield* onSqlite
      yield* Effect.provide(older, client)
      yield* Sqlite.exclusive({ filename })
      const config = yield* Effect.fromResult(Config.load(env))
      const refused = yield* Effect.flip(Layer.build(Wiring.layer(config)))
      expect(refused.message).toContain("another process uses the database file")
      expect(yield* Effect.provide(migrations, client)).toBe(known - 1)
    })
  )
})
