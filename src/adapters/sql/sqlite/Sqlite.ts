import { closeSync, openSync, realpathSync, statSync } from "node:fs"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as ErrorCode from "../ErrorCode.js"
import * as FilePresence from "./FilePresence.js"
import * as GroupCommit from "./GroupCommit.js"
import * as ResultCode from "./ResultCode.js"
import * as SqliteConnection from "./SqliteConnection.js"
import * as WriteAheadLog from "./WriteAheadLog.js"

/** The database file is unusable. */
export class SqliteError extends Data.TaggedError("SqliteError")<{ readonly message: string }> {}

/** Path of the file, and the wait for its lock. */
export interface Options {
  /** Path of the database file, created if absent, readable only by its owner; `:memory:` for tests. */
  readonly filename: string
  /** Wait of a write for another writing process, in ms. Default 5,000. */
  readonly busyTimeoutMillis?: number
}

const { inMemory } = SqliteConnection

/** Longest block of the thread by a statement while another process writes, in ms. */
const heldMillis = 20

/** Creates the file readable only by its owner, for it holds every tenant's operations; SQLite's default is world-readable. */
const createFile = (filename: string) =>
  Effect.try({
    try: () => closeSync(openSync(filename, "a", 0o600)),
    catch: (cause) =>
      new SqliteError({ message: `cannot open the database file ${filename}${ErrorCode.suffix(cause)}` })
  })

/** Time in which a busy process collects transactions for a shared commit, in ms. */
const gatherMillis = 20

/**
 * Pages in the write-ahead log before SQLite checkpoints it: 16 MB, and further writes of a busy process. A checkpoint
 * waits for the disk twice, on the event loop, and writes each page once however often the log has it.
 */
const logPages = 4_000

const clientOf = (
  connection: SqliteConnection.SqliteConnection,
  { busyTimeoutMillis = 5_000, filename }: Options,
  durability: WriteAheadLog.Durability
) =>
  GroupCommit.client(
    GroupCommit.make(connection, {
      durability,
      // Without a disk there is no write to share.
      gatherMillis: filename === inMemory ? null : gatherMillis,
      busyMillis: busyTimeoutMillis
    })
  )

/** Configures the connection, and verifies the settings that durability needs. */
const prepare = (
  { all }: SqliteConnection.SqliteConnection,
  { busyTimeoutMillis = heldMillis, filename }: Options
) =>
  Effect.gen(function* () {
    const pragma = (text: string) => Effect.try({ try: () => all(`pragma ${text}`, []), catch: identity })
    yield* pragma(`busy_timeout = ${Math.min(heldMillis, busyTimeoutMillis)}`)
    yield* pragma("synchronous = normal")
    yield* pragma("foreign_keys = on")
    // SQLite's rollback data would otherwise go to a temporary file, which needs a free descriptor and disk space: callers
    // that exhaust descriptors, or a full /tmp, would stop the journal's writes.
    yield* pragma("temp_store = memory")
    yield* pragma(`wal_autocheckpoint = ${logPages}`)
    if (filename === inMemory) return WriteAheadLog.inMemory
    const [mode] = yield* pragma("journal_mode")
    const [level] = yield* pragma("synchronous")
    if (mode?.journal_mode !== "wal" || level?.synchronous !== 1)
      return yield* new SqliteError({ message: `${filename} cannot be used with a write-ahead log` })
    // The first read creates the log.
    yield* pragma("user_version")
    return yield* WriteAheadLog.open(filename)
  })

/**
 * A client of one SQLite file with a write-ahead log. Every commit is on the disk when it returns, except as
 * `GroupCommit.answered` says; the event loop does not wait for the disk.
 */
export const make = (
  options: Options
): Effect.Effect<SqlClient.SqlClient, SqliteError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    if (options.filename !== inMemory) yield* createFile(options.filename)
    const connection = yield* SqliteConnection.open(options.filename)
    const durability = yield* prepare(connection, options)
    const present =
      options.filename === inMemory ? connection : yield* FilePresence.guard(connection, options.filename)
    return yield* clientOf(present, options, durability)
  }).pipe(
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.mapError((cause) =>
      cause instanceof SqliteError
        ? cause
        : new SqliteError({
            message: `cannot use the database file ${options.filename}${ErrorCode.suffix(cause)}`
          })
    ),
    Effect.withTracerEnabled(false)
  )

/** Creates the file if absent, and resolves symbolic links. */
const resolve = (filename: string) =>
  Effect.gen(function* () {
    yield* createFile(filename)
    const { file, names } = yield* Effect.try({
      try: () => ({ file: realpathSync(filename), names: statSync(filename).nlink }),
      catch: (cause) =>
        new SqliteError({ message: `cannot open the database file ${filename}${ErrorCode.suffix(cause)}` })
    })
    // SQLite derives lock and log from the name: processes with different names of one file would not see each other's.
    if (names > 1)
      return yield* new SqliteError({
        message: `the database file ${filename} has ${names} names (hard links): remove all but one, because each name would get its own write-ahead log and lock`
      })
    return file
  })

const lock = (filename: string, file: string) =>
  Effect.try({
    try: () => {
      const database = SqliteConnection.connect(`${file}-lock`, 0)
      try {
        database.exec("begin exclusive")
      } catch (cause) {
        database.close()
        throw cause
      }
      return database
    },
    catch: (thrown) => {
      const cause = ResultCode.refusal(thrown)
      return new SqliteError({
        message:
          cause instanceof ResultCode.Refused && cause.isBusy
            ? `another process uses the database file ${filename}: stop it first, or give both a PostgreSQL database`
            : `cannot lock the database file ${filename}${ErrorCode.suffix(cause)}`
      })
    }
  })

/**
 * Reserves a database file for this process until the scope ends; a second process is refused. The lock is the operating
 * system's, on a file next to the database, and ends with the process in any case. Tools that only read or add rows do not
 * need it.
 */
export const exclusive = ({
  filename
}: Pick<Options, "filename">): Effect.Effect<void, SqliteError, Scope.Scope> =>
  filename === inMemory
    ? Effect.void
    : Effect.gen(function* () {
        const file = yield* resolve(filename)
        yield* createFile(`${file}-lock`)
        yield* Effect.acquireRelease(lock(filename, file), (held) => Effect.sync(() => held.close()))
      })

/** One SQLite file, written by this process only, as Effect's `SqlClient`. */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqliteError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))
