import * as Layer from "effect/Layer"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Sqlite from "../../src/adapters/sql/sqlite/Sqlite.js"
import * as SqlWatches from "../../src/adapters/sql/watches/Watches.js"
import * as SqlWebhooks from "../../src/adapters/sql/webhooks/Webhooks.js"
import { options } from "../support/journal/Layers.js"
import * as Postgres from "../support/postgres/Postgres.js"
import { watchesSuite } from "./Watches.suite.js"

const on = <E>(client: Layer.Layer<SqlClient.SqlClient, E>) =>
  Layer.merge(SqlWatches.layer(options), SqlWebhooks.layer(options)).pipe(Layer.provide(client), Layer.orDie)

watchesSuite("SQLite", on(Sqlite.layer({ filename: ":memory:" })))
watchesSuite("PostgreSQL", on(Postgres.perFile().layer))
