import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Postgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as PostgresServer from "../postgres/Postgres.js"
import * as Tools from "../Tools.js"
import * as Journals from "./Journals.js"

/** A folder that is removed with its content when the scope ends. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "castellan-journal-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Clients, each of a fresh database on each use. The test file has one PostgreSQL server. */
export const clients = () => ({
  SQLite: Effect.map(temporaryFolder, (folder) =>
    Layer.orDie(Sqlite.layer({ filename: join(folder, "castellan.db") }))
  ),
  PostgreSQL: Effect.map(PostgresServer.perFile().fresh, (options) => Layer.orDie(Postgres.layer(options)))
})

export const options = { sealingKey: Redacted.make("a secret of the tests that is long enough") }

const on = <E>(client: Layer.Layer<SqlClient.SqlClient, E>): Layer.Layer<Journals.Ports> =>
  Layer.fresh(SqlJournal.layer(options).pipe(Layer.provide(client), Layer.orDie))

export const sqliteAt = (filename: string): Layer.Layer<Journals.Ports> => on(Sqlite.layer({ filename }))

export const postgresAt = (address: Postgres.Options): Layer.Layer<Journals.Ports> =>
  on(Postgres.layer(address))

/** A separate file for each use. */
export const sqlite: Layer.Layer<Journals.Ports> = Layer.unwrap(
  Effect.map(temporaryFolder, (folder) => sqliteAt(join(folder, "journal.db")))
)

/** A journal at a path or at a PostgreSQL server's URL. */
export const at = (database: string): Layer.Layer<Journals.Ports> =>
  database.startsWith("postgres:") ? postgresAt({ url: Redacted.make(database) }) : sqliteAt(database)

/** Referencing tables come first. */
const tables = [
  "handovers",
  "transaction_ops",
  "transaction_versions",
  "transactions",
  "deployments",
  "unbound_deployments",
  "leases",
  "ops",
  "webhook_deliveries",
  "watch_events",
  "watches",
  "watch_cursors",
  "watch_sources",
  "webhooks",
  "request_events",
  "requests",
  "lanes"
]

/** One database of the server, emptied before each use: creating a database takes longer than a test. */
export const postgresOn = ({ fresh }: PostgresServer.Databases): Layer.Layer<Journals.Ports> => {
  let database: Promise<Postgres.Options> | undefined
  const emptied = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* Effect.forEach(tables, (table) => sql`delete from ${sql(table)}`, { discard: true })
  })
  return Layer.unwrap(
    Effect.promise(async () => {
      await Tools.need("PostgreSQL")
      database ??= Effect.runPromise(fresh)
      return database
    }).pipe(
      Effect.map((address) =>
        Layer.fresh(
          Layer.tap(SqlJournal.layer(options), () => emptied).pipe(
            Layer.provide(Postgres.layer(address)),
            Layer.orDie
          )
        )
      )
    )
  )
}

/** Every journal, empty. */
export const adaptersOn = (databases: PostgresServer.Databases) => [
  { name: "SQLite", layer: sqlite },
  { name: "PostgreSQL", layer: postgresOn(databases) }
]

type Pair = Effect.Effect<readonly [Journals.Methods, Journals.Methods], never, Scope.Scope>

const pairOf = (layer: Layer.Layer<Journals.Ports>): Pair => {
  const one = Effect.map(Layer.build(layer), (context) => Journals.methodsOf(context))
  return Effect.all([one, one])
}

/** Two instances of the journal on one database, like two processes. */
export const pairs = ({ fresh }: PostgresServer.Databases): Readonly<Record<string, Pair>> => ({
  SQLite: Effect.flatMap(temporaryFolder, (folder) => pairOf(sqliteAt(join(folder, "journal.db")))),
  PostgreSQL: Effect.flatMap(fresh, (address) => pairOf(postgresAt(address)))
})
