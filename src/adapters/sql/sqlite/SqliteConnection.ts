import { resolve } from "node:path"
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Connection } from "effect/sql/SqlConnection"
import { classifySqliteError, SqlError } from "effect/sql/SqlError"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as ResultCode from "./ResultCode.js"

/** A row with the statement's columns. */
// biome-ignore lint/suspicious/noExplicitAny: who writes the statement says what its rows are, as in `Connection`.
type Row = any

/** One SQLite connection. Statements are synchronous; a refusal by the database throws an `SqlError`. */
export interface SqliteConnection {
  readonly all: (text: string, parameters: ReadonlyArray<unknown>) => ReadonlyArray<Row>
}

export const inMemory = ":memory:"

/** Most statements kept compiled. */
const mostStatements = 500

/** Size of the page cache: four times SQLite's default, since every journal read uses it. */
const cacheKib = 8_000

/** Wait of opening a file for another writing process, in ms. */
const openingMillis = 5_000

/** Opens a plain path; SQLite would take `file:...` for a URI. `busyMillis` is the wait for another connection's lock. */
export const connect = (filename: string, busyMillis: number): DatabaseSync =>
  new DatabaseSync(filename === inMemory ? filename : resolve(filename), { timeout: busyMillis })

const failed = (cause: unknown, message: string): SqlError =>
  new SqlError({ reason: classifySqliteError(ResultCode.refusal(cause), { message }) })

/** SQLite compiles a text's first statement and silently ignores others. */
const compile = (database: DatabaseSync, text: string): StatementSync => {
  const statement = database.prepare(text)
  if (text.slice(statement.sourceSQL.length).trim() !== "") throw new Error("more than one statement")
  return statement
}

/**
 * Values to bind; undefined becomes null, as in PostgreSQL. Most versions of Node before 24.21 read text only up to its
 * first null character, and then such text is refused.
 */
export const bindable = (
  parameters: ReadonlyArray<unknown>,
  cutsText: boolean
): ReadonlyArray<SQLInputValue> => {
  if (cutsText && parameters.some((value) => typeof value === "string" && value.includes("\0")))
    throw new Error(`SQLite of Node ${process.versions.node} cuts a text at a null character`)
  const values = parameters.includes(undefined) ? parameters.map((value) => value ?? null) : parameters
  // Binding refuses other types.
  return values as ReadonlyArray<SQLInputValue>
}

const cutsText = (database: DatabaseSync): boolean =>
  database.prepare("select ? as text").get("\0")?.text !== "\0"

/** Opens the file, with a write-ahead log. */
export const open = (filename: string): Effect.Effect<SqliteConnection, SqlError, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.try({
        try: () => {
          const database = connect(filename, openingMillis)
          try {
            database.exec("pragma journal_mode = wal")
            database.exec(`pragma cache_size = ${-cacheKib}`)
            return database
          } catch (cause) {
            database.close()
            throw cause
          }
        },
        catch: (cause) => failed(cause, "the database cannot be opened")
      }),
      (database) => Effect.sync(() => database.close())
    ),
    (database) => {
      const isCut = cutsText(database)
      const statements = new Lru<string, StatementSync>(mostStatements)
      const prepared = (text: string): StatementSync => {
        const known = statements.get(text)
        if (known !== undefined) return known
        const statement = compile(database, text)
        statements.set(text, statement)
        return statement
      }
      return {
        all: (text, parameters) => {
          try {
            return prepared(text).all(...bindable(parameters, isCut))
          } catch (cause) {
            throw failed(cause, "the statement failed")
          }
        }
      }
    }
  )

export const connectionOf = (
  run: (text: string, parameters: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<Row>, SqlError>
): Connection => {
  const execute: Connection["execute"] = (text, parameters, transformRows) =>
    transformRows === undefined ? run(text, parameters) : Effect.map(run(text, parameters), transformRows)
  const executeValues: Connection["executeValues"] = (text, parameters) =>
    Effect.map(run(text, parameters), (rows) => rows.map((row) => Object.values(row)))
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: run,
    executeValues,
    executeValuesUnprepared: executeValues,
    executeStream: () => Stream.die(new Error("rows of SQLite are not streamed"))
  }
}
