import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"

export const step = (
  statements: (sql: SqlClient.SqlClient) => ReadonlyArray<Effect.Effect<unknown, SqlError>>
): Effect.Effect<void, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.all(statements(sql), { discard: true }))

/** A column that numbers rows in insertion order. */
export const identity = (sql: SqlClient.SqlClient): Fragment =>
  sql.onDialectOrElse({
    pg: () => sql.literal("bigint generated always as identity primary key"),
    orElse: () => sql.literal("integer primary key autoincrement")
  })

/** Stores a table's rows in primary key order. */
export const clustered = (sql: SqlClient.SqlClient): Fragment =>
  sql.onDialectOrElse({ pg: () => sql.literal(""), orElse: () => sql.literal("without rowid") })

/** A hash or an id in an index: its first 18 characters on SQLite. */
export const beginning = (sql: SqlClient.SqlClient, column: string): Fragment =>
  sql.onDialectOrElse({
    pg: () => sql.literal(column),
    orElse: () => sql.literal(`substr(${column}, 1, 18)`)
  })

/** Makes the database refuse changes and deletions of a table's rows; requires the function `audit_is_append_only`. */
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
