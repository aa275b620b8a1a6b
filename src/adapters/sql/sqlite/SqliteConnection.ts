import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Lru } from "../../../domain/primitives/Lru.js"

/** A row, whose columns the statement names. */
// biome-ignore lint/suspicious/noExplicitAny: who writes the statement says what its rows are, as in `Connection`.
type Row = any

/** One connection of SQLite. A statement is done when its function returns; what the database refuses is an `SqlError`. */
export interface SqliteConnection {
  /** The rows of the statement; none when it has none. */
  readonly all: (text: string, parameters: ReadonlyArray<unknown>) => ReadonlyArray<Row>
}

/** Statements that are kept compiled. */
const mostStatements = 500

/** Opens the file, with a write-ahead log. */
export const open = (filename: string): Effect.Effect<SqliteConnection, SqlError, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.try({
        try: () => {
          const database = new Database(filename)
          database.pragma("journal_mode = WAL")
          return database
        },
        catch: (cause) => new SqlError({ cause, message: "the database cannot be opened" })
      }),
      (database) => Effect.sync(() => database.close())
    ),
    (database) => {
      const statements = new Lru<string, Database.Statement>(mostStatements)
      const prepared = (text: string): Database.Statement => {
        const known = statements.get(text)
        if (known !== undefined) return known
        const statement = database.prepare(text)
        statements.set(text, statement)
        return statement
      }
      return {
        all: (text, parameters) => {
          try {
            const statement = prepared(text)
            if (statement.reader) return statement.all(...parameters)
            statement.run(...parameters)
            return []
          } catch (cause) {
            throw new SqlError({ cause, message: "the statement failed" })
          }
        }
      }
    }
  )

/** A connection each of whose statements is run in that way; only rows as objects are read of it. */
export const connectionOf = (
  run: (text: string, parameters: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<Row>, SqlError>
): Connection => ({
  execute: (text, parameters, transformRows) =>
    transformRows === undefined ? run(text, parameters) : Effect.map(run(text, parameters), transformRows),
  executeRaw: run,
  executeUnprepared: run,
  executeValues: (text, parameters) =>
    Effect.map(run(text, parameters), (rows) => rows.map((row) => Object.values(row))),
  executeStream: () => {
    throw new Error("rows of SQLite are not streamed")
  }
})
