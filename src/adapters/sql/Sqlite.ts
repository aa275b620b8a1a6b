import { closeSync, openSync } from "node:fs"
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import * as Statement from "@effect/sql/Statement"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import Database from "better-sqlite3"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as ErrorCode from "./ErrorCode.js"
import * as GroupCommit from "./GroupCommit.js"

/** The database file cannot be used. */
export class SqliteError extends Data.TaggedError("SqliteError")<{ readonly message: string }> {}

export interface Options {
  /** Path of the database file, made (readable by its owner only) when it is absent; `:memory:` for tests. */
  readonly filename: string
  /** How long a write waits for another process that writes, milliseconds. Default 5,000. */
  readonly busyTimeoutMillis?: number
}

const inMemory = ":memory:"

/** How long one statement may hold the thread while another process writes. */
const heldMillis = 20

/** The file holds every tenant's operations: SQLite alone would make it readable by everybody. */
const createFile = (filename: string) =>
  Effect.try({
    try: () => closeSync(openSync(filename, "a", 0o600)),
    catch: (cause) =>
      new SqliteError({ message: `cannot open the database file ${filename}${ErrorCode.suffix(cause)}` })
  })

/** How long transactions of a busy process are gathered before they are committed together. */
const gatherMillis = 20

/** The connection of statements that are in no transaction. */
const outside = (connection: Connection, { alone }: GroupCommit.GroupCommit): Connection => ({
  execute: (...args) => alone(connection.execute(...args)),
  executeRaw: (...args) => alone(connection.executeRaw(...args)),
  executeValues: (...args) => alone(connection.executeValues(...args)),
  executeUnprepared: (...args) => alone(Effect.suspend(() => connection.executeUnprepared(...args))),
  executeStream: (...args) => connection.executeStream(...args)
})

const clientOf = (connection: Connection, { busyTimeoutMillis = 5_000, filename }: Options) =>
  Effect.gen(function* () {
    const group = GroupCommit.make(connection, {
      // Without a disk there is no write to share.
      gatherMillis: filename === inMemory ? null : gatherMillis,
      busyMillis: busyTimeoutMillis
    })
    const client = yield* SqlClient.make({
      acquirer: Effect.succeed(outside(connection, group)),
      compiler: Statement.makeCompilerSqlite(),
      spanAttributes: [["db.system.name", "sqlite"]]
    })
    return Object.assign(client, { withTransaction: group.withTransaction })
  })

/**
 * A client of one SQLite file: write-ahead log, and every commit is on the disk when it returns
 * (`synchronous = FULL`: the default of a write-ahead log is not durable).
 */
export const make = (
  options: Options
): Effect.Effect<SqlClient.SqlClient, SqliteError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    if (options.filename !== inMemory) yield* createFile(options.filename)
    const { reserve } = yield* SqliteClient.make({ filename: options.filename })
    const sql = yield* clientOf(yield* reserve, options)
    yield* sql`pragma busy_timeout = ${sql.literal(String(Math.min(heldMillis, options.busyTimeoutMillis ?? heldMillis)))}`
    yield* sql`pragma synchronous = full`
    yield* sql`pragma foreign_keys = on`
    const [mode] = yield* sql<{ readonly journal_mode: string }>`pragma journal_mode`
    const [level] = yield* sql<{ readonly synchronous: number }>`pragma synchronous`
    if (options.filename !== inMemory && (mode?.journal_mode !== "wal" || level?.synchronous !== 2))
      return yield* new SqliteError({ message: `${options.filename} cannot be used with a write-ahead log` })
    return sql
  }).pipe(
    Effect.catchAllDefect((defect) => Effect.fail(defect)),
    Effect.mapError((cause) =>
      cause instanceof SqliteError
        ? cause
        : new SqliteError({
            message: `cannot use the database file ${options.filename}${ErrorCode.suffix(cause)}`
          })
    ),
    Effect.withTracerEnabled(false)
  )

/**
 * Keeps a database file for this process until the scope ends: a second process that wants the same is refused. The lock
 * is one of the operating system, on a file beside the database, and ends with the process however it ends. Tools that
 * only read or add rows do not need it.
 */
export const exclusive = ({
  filename
}: Pick<Options, "filename">): Effect.Effect<void, SqliteError, Scope.Scope> =>
  filename === inMemory
    ? Effect.void
    : Effect.zipRight(
        createFile(`${filename}-lock`),
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.try({
              try: () => {
                const lock = new Database(`${filename}-lock`, { timeout: 0 })
                try {
                  lock.exec("begin exclusive")
                } catch (cause) {
                  lock.close()
                  throw cause
                }
                return lock
              },
              catch: (cause) =>
                new SqliteError({
                  message:
                    ErrorCode.suffix(cause) === " (SQLITE_BUSY)"
                      ? `another process uses the database file ${filename}: stop it first, or give both a PostgreSQL database`
                      : `cannot lock the database file ${filename}${ErrorCode.suffix(cause)}`
                })
            }),
            (lock) => Effect.sync(() => lock.close())
          )
        )
      )

export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqliteError> =>
  Layer.scoped(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))
