import { closeSync, openSync, realpathSync, statSync } from "node:fs"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as ErrorCode from "./ErrorCode.js"
import * as FilePresence from "./sqlite/FilePresence.js"
import * as GroupCommit from "./sqlite/GroupCommit.js"
import * as ResultCode from "./sqlite/ResultCode.js"
import * as SqliteConnection from "./sqlite/SqliteConnection.js"
import * as WriteAheadLog from "./sqlite/WriteAheadLog.js"

/** The database file cannot be used. */
export class SqliteError extends Data.TaggedError("SqliteError")<{ readonly message: string }> {}

export interface Options {
  /** Path of the database file, made (readable by its owner only) when it is absent; `:memory:` for tests. */
  readonly filename: string
  /** How long a write waits for another process that writes, milliseconds. Default 5,000. */
  readonly busyTimeoutMillis?: number
}

const { inMemory } = SqliteConnection

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

/**
 * Pages in the write-ahead log from which on SQLite moves them into the database: 16 MB, and what a busy process writes
 * until then. The move waits for the disk twice, on the event loop, and writes a page once however often the log has it.
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

/** Settings of the connection; what it has to be like to be durable is looked at, not assumed. */
const prepare = (
  { all }: SqliteConnection.SqliteConnection,
  { busyTimeoutMillis = heldMillis, filename }: Options
) =>
  Effect.gen(function* () {
    const pragma = (text: string) => Effect.try({ try: () => all(`pragma ${text}`, []), catch: identity })
    yield* pragma(`busy_timeout = ${Math.min(heldMillis, busyTimeoutMillis)}`)
    yield* pragma("synchronous = normal")
    yield* pragma("foreign_keys = on")
    // What SQLite sets aside to undo a statement would be a temporary file otherwise, which writes would need a free
    // descriptor and a folder for: callers that hold all descriptors, or a full /tmp, would keep the journal from writing.
    yield* pragma("temp_store = memory")
    yield* pragma(`wal_autocheckpoint = ${logPages}`)
    if (filename === inMemory) return WriteAheadLog.inMemory
    const [mode] = yield* pragma("journal_mode")
    const [level] = yield* pragma("synchronous")
    if (mode?.journal_mode !== "wal" || level?.synchronous !== 1)
      return yield* new SqliteError({ message: `${filename} cannot be used with a write-ahead log` })
    // The first look at the database makes the log.
    yield* pragma("user_version")
    return yield* WriteAheadLog.open(filename)
  })

/**
 * A client of one SQLite file with a write-ahead log. Every commit is on the disk when it returns, except for those that
 * say otherwise (`GroupCommit.answered`); the event loop does not wait for the disk.
 */
export const make = (
  options: Options
): Effect.Effect<SqlClient.SqlClient, SqliteError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    if (options.filename !== inMemory) yield* createFile(options.filename)
    const connection = yield* SqliteConnection.open(options.filename)
    const durability = yield* prepare(connection, options)
    const present =
      options.filename === inMemory ? connection : yield* FilePresence.guarded(connection, options.filename)
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

/** The file itself, made when it is absent: whoever names it by a symbolic link means the same. */
const resolved = (filename: string) =>
  Effect.gen(function* () {
    yield* createFile(filename)
    const { file, names } = yield* Effect.try({
      try: () => ({ file: realpathSync(filename), names: statSync(filename).nlink }),
      catch: (cause) =>
        new SqliteError({ message: `cannot open the database file ${filename}${ErrorCode.suffix(cause)}` })
    })
    // Lock and write-ahead log are found by the name. Two processes that name it otherwise would not see each other's.
    if (names > 1)
      return yield* new SqliteError({
        message: `the database file ${filename} has ${names} names (hard links): remove all but one, since each would have a write-ahead log and a lock of its own`
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
 * Keeps a database file for this process until the scope ends: a second process that wants the same is refused. The lock
 * is one of the operating system, on a file beside the database, and ends with the process however it ends. Tools that
 * only read or add rows do not need it.
 */
export const exclusive = ({
  filename
}: Pick<Options, "filename">): Effect.Effect<void, SqliteError, Scope.Scope> =>
  filename === inMemory
    ? Effect.void
    : Effect.gen(function* () {
        const file = yield* resolved(filename)
        yield* createFile(`${file}-lock`)
        yield* Effect.acquireRelease(lock(filename, file), (held) => Effect.sync(() => held.close()))
      })

export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqliteError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))
