import { readFileSync } from "node:fs"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { ConnectionError, SqlError } from "effect/sql/SqlError"

/** A client with snapshot reads. */
export interface PostgresClient extends SqlClient.SqlClient {
  /** A read-only transaction on the snapshot of its start. */
  readonly ofOneMoment: SqlClient.SqlClient["withTransaction"]
  /** A transaction that first acquires the named locks, and holds them until it ends. */
  readonly locking: (names: ReadonlyArray<string>) => SqlClient.SqlClient["withTransaction"]
}

export interface Options
  extends Pick<PgPool.Config, "url" | "host" | "port" | "username" | "password" | "database"> {
  readonly maxConnections: number
  readonly connectTimeoutMillis: number
  /** Time-out of a statement, in ms; null: none. */
  readonly answerTimeoutMillis: number | null
}

/** Row values as from SQLite: integers are numbers, or text beyond 2^53, which keeps them exact. */
const types = PgTypes.makeRegistry()
types.register<bigint | number | string>(PgTypes.OID.int8, {
  encode: (value) => PgTypes.encode(value, PgTypes.OID.int8),
  decode: (bytes) => {
    const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).readBigInt64BE()
    const number = Number(value)
    return Result.succeed(Number.isSafeInteger(number) ? number : value.toString())
  }
})

/** Reads a URL's TLS parameters that the client does not: files, and other drivers' names. */
export const withTls = (address: Redacted.Redacted<string>): Pick<PgPool.Config, "ssl" | "url"> => {
  const url = new URL(Redacted.value(address))
  const parameter = (name: string) => url.searchParams.get(name) ?? ""
  const isUnverified = parameter("sslmode") === "no-verify"
  if (isUnverified) url.searchParams.delete("sslmode")
  const files = [
    ["ca", parameter("sslrootcert") === "system" ? "" : parameter("sslrootcert")],
    ["cert", parameter("sslcert")],
    ["key", parameter("sslkey")]
  ].filter(([, file]) => file !== "")
  const isEncrypted = isUnverified || files.length > 0 || ["true", "1"].includes(parameter("ssl"))
  return {
    url: Redacted.make(url.href),
    ...(isEncrypted &&
      parameter("sslmode") !== "disable" && {
        ssl: {
          ...Object.fromEntries(files.map(([name, file]) => [name, readFileSync(file ?? "")])),
          ...(isUnverified && { rejectUnauthorized: false })
        }
      })
  }
}

/**
 * Overrides the settings of server, database and role outside of transactions, too, where cluster rows and request counts
 * are written. Cluster rows have times without a zone, which would leap by an hour twice a year in a zone with summer time.
 */
const defaults = `select set_config('default_transaction_isolation', 'read committed', false),
  set_config('default_transaction_read_only', 'off', false), set_config('timezone', 'UTC', false)`

/** Statements see commits made before they start; otherwise waiting for a lock would be useless. */
const writing = "begin isolation level read committed read write"
/** Statements see the snapshot of the transaction's start. */
const reading = "begin isolation level repeatable read read only"

/**
 * First statement of a transaction; commits are on the disk. No lock wait is endless, and a stuck or disconnected process
 * loses its locks before its lanes move (`adapters/cluster/Replicas.ts`). The server's statement time-out is shorter than
 * the client's, so the client closes only connections that the network has lost.
 */
const settings = (answerTimeoutMillis: number | null): string =>
  `set_config('lock_timeout', '10s', true),
  set_config('statement_timeout', '${answerTimeoutMillis === null ? 0 : answerTimeoutMillis - 1_000}', true),
  set_config('idle_in_transaction_session_timeout', '5s', true), set_config('synchronous_commit',
    case when current_setting('synchronous_commit') = 'remote_apply' then 'remote_apply' else 'on' end, true)`

/**
 * Takes a lock for each name and holds it until the transaction ends. The settings come first: PostgreSQL reads the lock
 * timeout when a wait begins.
 */
const locking = (settings: string): string =>
  `select count(pg_advisory_xact_lock(hashtextextended(name, 0)))
   from (select ${settings}) as set cross join unnest($1::text[]) as name`

const failed = (message: string, code?: string) =>
  new SqlError({
    reason: new ConnectionError({ cause: Object.assign(new Error(message), { code }), message })
  })

const unanswered = Effect.fail(failed("the server did not answer in time"))
const noConnection = Effect.fail(failed("no connection is free"))

/** Prepares no named statements: a pooler may use another server session for each transaction. */
const connectionOf = (
  { query, queryValues }: PgConnection.PgConnection,
  answerTimeoutMillis: number | null,
  /** Closes the connection after a time-out, so that it is not reused. */
  cut: () => void
): Connection => {
  let isCut = false
  const answered = <A>(asked: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
    answerTimeoutMillis === null
      ? asked
      : Effect.callback((resume) => {
          if (isCut) return resume(unanswered)
          const fiber = Effect.runFork(asked)
          const timer = setTimeout(() => {
            isCut = true
            cut()
            // Does not wait for the server to notice.
            resume(unanswered)
            fiber.interruptUnsafe()
          }, answerTimeoutMillis)
          fiber.addObserver((exit) => {
            clearTimeout(timer)
            resume(exit)
          })
          return Fiber.interrupt(fiber)
        })
  const executeRaw = (text: string, parameters: ReadonlyArray<unknown>) =>
    answered(query(text, parameters, false))
  const execute: Connection["execute"] = (text, parameters, transformRows) =>
    Effect.map(executeRaw(text, parameters), ({ rows }) => transformRows?.(rows) ?? rows)
  const executeValues: Connection["executeValues"] = (text, parameters) =>
    answered(queryValues(text, parameters, false))
  return {
    execute,
    executeUnprepared: execute,
    executeRaw,
    executeValues,
    executeValuesUnprepared: executeValues,
    executeStream: () => Stream.die(new Error("rows of PostgreSQL are not streamed"))
  }
}

/** The machine's clock, for time-outs of the server. */
const machine = Clock.Clock.defaultValue()

/** Settings of every connection. A row of a large batch has megabytes; PostgreSQL's own limit of a value suffices. */
const means = {
  keepAlive: "10 seconds",
  applicationName: "castellan",
  maxMessageSize: 2 ** 30,
  types
} as const

export const session = (
  url: Redacted.Redacted<string>
): Effect.Effect<PgConnection.PgConnection, SqlError, Scope.Scope> =>
  PgConnection.make({ ...means, ...withTls(url) })

const execute = (connection: Connection, text: string, parameters: ReadonlyArray<unknown> = []) =>
  Effect.asVoid(connection.executeRaw(text, parameters))

/** The server answers the commit of a failed transaction with success, as a rollback. */
const commit = (connection: Connection): Effect.Effect<void, SqlError> =>
  Effect.flatMap(connection.executeRaw("commit", []), (answer) =>
    (answer as PgConnection.Result).command === "COMMIT"
      ? Effect.void
      : Effect.fail(failed("it was rolled back", "25P02"))
  )

/** Ends a connection that may still be in a transaction, so that it is not reused. */
const rollback = (connection: Connection): Effect.Effect<void> =>
  execute(connection, "rollback").pipe(
    Effect.catch(() => execute(connection, "select pg_terminate_backend(pg_backend_pid())")),
    Effect.ignore
  )

export const make = ({
  answerTimeoutMillis,
  connectTimeoutMillis,
  url,
  ...where
}: Options): Effect.Effect<PostgresClient, SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const pool = yield* PgPool.make({
      ...where,
      ...(url !== undefined && withTls(url)),
      ...means,
      connectTimeout: connectTimeoutMillis
    }).pipe(Effect.provideService(Clock.Clock, machine))
    const known = new WeakSet<PgConnection.PgConnection>()
    const own = (connection: PgConnection.PgConnection, lent = connection) =>
      connectionOf(lent, answerTimeoutMillis, () => void Effect.runFork(pool.invalidate(connection)))
    const taken = pool.get.pipe(
      // A connection time-out fails this waiter, not the next one.
      Effect.timeoutOrElse({ duration: connectTimeoutMillis + 500, orElse: () => noConnection }),
      Effect.provideService(Clock.Clock, machine),
      Effect.tap((connection) =>
        known.has(connection)
          ? Effect.void
          : Effect.map(execute(own(connection), defaults), () => void known.add(connection))
      )
    )
    const reserved = Effect.flatMap(taken, (connection) =>
      Effect.map(connection.pin, (pinned) => own(connection, pinned))
    )
    const client = yield* SqlClient.make({
      acquirer: Effect.map(taken, (connection) => own(connection)),
      transactionAcquirer: reserved,
      compiler: PgClient.makeCompiler(),
      driver: "pg",
      spanAttributes: [["db.system.name", "postgresql"]]
    })
    const transactions = client.transactionService
    const begun = SqlClient.makeWithTransaction({
      transactionService: transactions,
      spanAttributes: [],
      acquireConnection: (restore) => restore(reserved),
      begin: (connection: Connection, statement) => execute(connection, statement ?? writing),
      savepoint: (connection, id) => execute(connection, `savepoint part${id}`),
      commit,
      onCommitFailure: rollback,
      rollback,
      rollbackSavepoint: (connection, id) => execute(connection, `rollback to savepoint part${id}`)
    })
    const beginning = settings(answerTimeoutMillis)
    const transaction =
      (statement: string, names: ReadonlyArray<string> = []): SqlClient.SqlClient["withTransaction"] =>
      (effect) =>
        Effect.withFiber((fiber) => {
          const isPart = Context.getOrUndefined(fiber.context, transactions) !== undefined
          const locked = Effect.flatMap(transactions, ([connection]) => {
            const set = isPart ? "null" : beginning
            if (names.length > 0) return Effect.andThen(execute(connection, locking(set), [names]), effect)
            return isPart ? effect : Effect.andThen(execute(connection, `select ${set}`), effect)
          })
          // Spans of statements carry their text: there are none in a transaction.
          return begun(locked as typeof effect).pipe(
            Effect.provideService(SqlClient.BeginTransaction, statement),
            Effect.withTracerEnabled(false)
          )
        })
    return Object.assign(client, {
      withTransaction: transaction(writing),
      ofOneMoment: transaction(reading),
      locking: (names: ReadonlyArray<string>) => transaction(writing, names)
    })
  })
