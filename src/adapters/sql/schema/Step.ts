import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"

/** A step of the schema: its statements, one after another. */
export const step = (
  statements: (sql: SqlClient.SqlClient) => ReadonlyArray<Effect.Effect<unknown, SqlError>>
): Effect.Effect<void, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.all(statements(sql), { discard: true }))

/** Of a column: numbers the rows in the order in which they come. */
export const identity = (sql: SqlClient.SqlClient): Fragment =>
  sql.onDialectOrElse({
    pg: () => sql.literal("bigint generated always as identity primary key"),
    orElse: () => sql.literal("integer primary key autoincrement")
  })

/** Of a table: its rows stand in the order of the primary key. */
export const clustered = (sql: SqlClient.SqlClient): Fragment =>
  sql.onDialectOrElse({ pg: () => sql.literal(""), orElse: () => sql.literal("without rowid") })

/** The database itself refuses to change or remove a row of the table, whoever asks; `audit_is_append_only` is there. */
export const appendOnly = (sql: SqlClient.SqlClient, table: string, what: string) =>
  sql.onDialectOrElse({
    pg: () =>
      sql.unsafe(`
        create trigger ${table}_append_only before update or delete or truncate on ${table}
        for each statement execute function audit_is_append_only()`),
    orElse: () =>
      Effect.forEach(["update", "delete"], (change) =>
        sql.unsafe(`
          create trigger ${table}_no_${change} before ${change} on ${table}
          begin select raise(abort, '${what} is append-only'); end`)
      )
  })
