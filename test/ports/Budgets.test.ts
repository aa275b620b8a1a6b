import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlClient } from "effect/sql/SqlClient"
import * as SqlBudgets from "../../src/adapters/sql/budgets/Budgets.js"
import * as Postgres from "../../src/adapters/sql/postgres/Postgres.js"
import * as Sqlite from "../../src/adapters/sql/sqlite/Sqlite.js"
import type { Budgets } from "../../src/application/ports/Budgets.js"
import { temporaryFolder } from "../support/journal/Layers.js"
import * as PostgresServer from "../support/postgres/Postgres.js"
import { suite } from "./Budgets.suite.js"

const over = <E>(client: Layer.Layer<SqlClient, E>): Layer.Layer<Budgets> =>
  SqlBudgets.layer.pipe(Layer.provide(Layer.fresh(client)), Layer.orDie)

const databases = PostgresServer.perFile()

suite(
  "SQLite",
  Effect.map(temporaryFolder, (folder) => over(Sqlite.layer({ filename: join(folder, "castellan.db") })))
)
suite(
  "PostgreSQL",
  Effect.map(databases.fresh, (options) => over(Postgres.layer(options)))
)
