import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlAbiStore from "../../src/adapters/sql/AbiStore.js"
import * as Postgres from "../../src/adapters/sql/postgres/Postgres.js"
import * as Store from "../../src/adapters/sql/Store.js"
import * as Sqlite from "../../src/adapters/sql/sqlite/Sqlite.js"
import * as Keccak from "../../src/domain/primitives/Keccak.js"
import { temporaryFolder } from "../support/journal/Layers.js"
import * as PostgresServer from "../support/postgres/Postgres.js"
import { type Database, suite } from "./AbiStore.suite.js"

/** The adapter over a database, and a way past it to many rows. */
const over = <E>(client: Layer.Layer<SqlClient.SqlClient, E>): Database => {
  const layer = SqlAbiStore.layer.pipe(Layer.provideMerge(Layer.fresh(client)), Layer.orDie)
  return {
    layer,
    fill: (account, events) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const rows = events.map(({ canonical }, index) => ({
          account_id: account,
          ordinal: index + 1,
          kind: "event",
          digest: Keccak.hashText(canonical),
          canonical
        }))
        for (const chunk of Store.chunks(rows)) yield* sql`insert into abi_definitions ${sql.insert(chunk)}`
      }).pipe(Effect.provide(layer))
  }
}

const databases = PostgresServer.perFile()

suite(
  "SQLite",
  Effect.map(temporaryFolder, (folder) => over(Sqlite.layer({ filename: join(folder, "castellan.db") })))
)
suite(
  "PostgreSQL",
  Effect.map(databases.fresh, (options) => over(Postgres.layer(options)))
)
