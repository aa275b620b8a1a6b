import { randomUUID } from "node:crypto"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as SqlClient from "effect/sql/SqlClient"
import { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { JournalError } from "../../application/ports/journal/JournalError.js"
import * as Uint from "../../domain/primitives/Uint.js"
import * as ErrorCode from "./ErrorCode.js"
import type { PostgresClient } from "./postgres/PostgresClient.js"
import * as Lineage from "./recovery/Lineage.js"
import * as Seal from "./Seal.js"
import type { SqliteClient } from "./sqlite/GroupCommit.js"

/** A journal's connection, and the ways in which its methods use it. */
export interface Store {
  readonly sql: SqlClient.SqlClient
  /** Runs a method atomically and durably. A database error becomes a `JournalError`. */
  readonly transaction: <A, E>(
    effect: Effect.Effect<A, E>
  ) => Effect.Effect<A, Exclude<E, SqlError> | JournalError>
  /** Runs a read-only method on one snapshot. */
  readonly reading: Store["transaction"]
  /** Runs a read-only method of one statement, or of several that need no common snapshot. */
  readonly query: Store["transaction"]
  /** Runs a method that first acquires the named locks. */
  readonly locking: (names: ReadonlyArray<string>) => Store["transaction"]
  /** Waits until all earlier commits survive a crash of the machine. */
  readonly durable: Effect.Effect<void, JournalError>
  readonly lock: (name: string) => Effect.Effect<void, SqlError>
  /** Suffix of a query that locks its rows exclusively until the transaction ends. */
  readonly forUpdate: Fragment
  /** Suffix of a query that locks its rows against changes until the transaction ends. */
  readonly forShare: Fragment
  /** Name of this journal instance, as a holder of lanes. */
  readonly instance: string
  readonly lineage: Lineage.Lineage
  readonly seal: Seal.Seal
}

export interface Options {
  /** Seals requests and nodes at rest. Keep it as long as the database: no other key opens them. */
  readonly sealingKey: Redacted.Redacted<string>
}

const storeFailed = (error: SqlError): JournalError => {
  const code = ErrorCode.suffix(error)
  return new JournalError({
    message: `the journal's store failed${code}`,
    // SQLite rolls a transaction back that finds the disk full, its commit too.
    ...(code === " (SQLITE_FULL)" && { isUndone: true as const })
  })
}

/**
 * PostgreSQL's full disk (53100) at a statement: the transaction is rolled back, since its commit is never sent. The failure of
 * a commit stays uncertain.
 */
const undone = <E>(error: E): E | JournalError =>
  isSqlError(error) && ErrorCode.suffix(error) === " (53100)"
    ? new JournalError({ message: storeFailed(error).message, isUndone: true })
    : error

export const isSqlError = (error: unknown): error is SqlError => error instanceof SqlError

/** PostgreSQL rolled back one of two conflicting transactions: it may run again. */
export const isBroken = (error: unknown): boolean =>
  isSqlError(error) && [" (40001)", " (40P01)"].includes(ErrorCode.suffix(error))

export const isSqlite = (client: SqlClient.SqlClient): client is SqliteClient => "read" in client

/** Recognises the client without its module, which a SQLite process does not load. */
export const isPostgres = (client: SqlClient.SqlClient): client is PostgresClient => "ofOneMoment" in client

type Run = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>

/** Runs an effect atomically and durably. On SQLite, others wait while it waits. */
export const transaction = (sql: SqlClient.SqlClient): Run => sql.withTransaction

/** Runs a read-only effect on one snapshot. */
export const reading = (sql: SqlClient.SqlClient): Run => {
  if (isSqlite(sql)) return sql.read
  return isPostgres(sql) ? sql.ofOneMoment : sql.withTransaction
}

/** Runs a read-only effect of one statement, or of several that need no common snapshot. */
export const query = (sql: SqlClient.SqlClient): Run =>
  // Spans of statements carry their text.
  isSqlite(sql) ? sql.query : Effect.withTracerEnabled(false)

/** PostgreSQL answers a commit only once it is durable. */
export const durable = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError> =>
  isSqlite(sql) ? sql.durable : Effect.void

export const lock =
  (sql: SqlClient.SqlClient) =>
  (name: string): Effect.Effect<void, SqlError> =>
    isPostgres(sql)
      ? Effect.asVoid(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`)
      : Effect.void

/** Runs an effect atomically and durably, once it has the named locks. */
export const locking = (sql: SqlClient.SqlClient, names: ReadonlyArray<string>): Run =>
  // A fixed order prevents deadlocks.
  isPostgres(sql) ? sql.locking(distinct(names)) : transaction(sql)

/** Empty on SQLite, which has one writer at a time: a transaction excludes all others from its start. */
const onPostgres = (sql: SqlClient.SqlClient, text: string): Fragment =>
  sql.literal(isPostgres(sql) ? text : "")

const withJournalError = <A, E>(
  sql: SqlClient.SqlClient,
  method: Effect.Effect<A, E | SqlError>
): Effect.Effect<A, Exclude<E, SqlError> | JournalError> =>
  Effect.mapError(isPostgres(sql) ? Effect.retry(method, { times: 3, while: isBroken }) : method, (error) =>
    isSqlError(error) ? storeFailed(error) : (error as Exclude<E, SqlError>)
  )

export const make = (sql: SqlClient.SqlClient, { sealingKey }: Options): Store => {
  const lineage = Lineage.make()
  const intact =
    (run: Run): Store["transaction"] =>
    (effect) =>
      lineage.intact(withJournalError(sql, run(Effect.mapError(effect, undone))))
  return {
    sql,
    lineage,
    seal: Seal.make(sealingKey),
    forUpdate: onPostgres(sql, "for update"),
    forShare: onPostgres(sql, "for share"),
    instance: randomUUID(),
    transaction: intact(transaction(sql)),
    locking: (names) => intact(locking(sql, names)),
    reading: intact(reading(sql)),
    query: intact(query(sql)),
    durable: Effect.mapError(durable(sql), storeFailed),
    lock: lock(sql)
  }
}

/** Suffix of a query that locks this table's rows against deletion, but not changes, until the transaction ends. */
export const forKeyShare = ({ sql }: Pick<Store, "sql">, table: string): Fragment =>
  onPostgres(sql, `for key share of ${table}`)

/** Upper bound of a row claim, in ms. A longer one was made while a clock was ahead, perhaps by an ended process. */
const longestClaimMillis = 300_000

/** Whether no other process has claimed the row. */
export const isFree = ({ sql }: Pick<Store, "sql">, process: string, now: number): Fragment => sql`
  (claimed_until <= ${now} or claimed_until > ${now + longestClaimMillis} or claimed_by = ${process})`

/** Fails for a call that contradicts the journal. */
export const refuse = (message: string): Effect.Effect<never, JournalError> =>
  Effect.fail(new JournalError({ message }))

/** Fails unless every value is an unsigned integer of at most `bits` bits. */
export const fits = (bits: number, values: Iterable<bigint>): Effect.Effect<void, JournalError> => {
  const most = Uint.max(bits)
  for (const value of values)
    if (value < 0n || value > most) return refuse("an integer does not fit its field")
  return Effect.void
}

/** Column of an unsigned 64-bit integer: nonces and sequences. */
export const uint64 = (value: bigint): string => value.toString().padStart(20, "0")

/** Column of a nonce key, 192 bits. */
export const nonceKey = (value: bigint): string => value.toString().padStart(58, "0")

/** Splits rows by statement: the number of parameters is limited. */
export const chunks = <A>(
  values: ReadonlyArray<A>,
  size = 500
): ReadonlyArray<Arr.NonEmptyReadonlyArray<A>> =>
  Arr.isReadonlyArrayNonEmpty(values) ? Arr.chunksOf(values, size) : []

export const inChunks = <A, Row, E>(
  values: ReadonlyArray<A>,
  statement: (chunk: Arr.NonEmptyReadonlyArray<A>) => Effect.Effect<ReadonlyArray<Row>, E>
): Effect.Effect<ReadonlyArray<Row>, E> =>
  Effect.map(Effect.forEach(chunks(values), statement), (rows) => rows.flat())

export const forChunks = <A, B, E>(
  values: ReadonlyArray<A>,
  statement: (chunk: Arr.NonEmptyReadonlyArray<A>) => Effect.Effect<B, E>,
  size?: number
): Effect.Effect<void, E> => Effect.forEach(chunks(values, size), statement, { discard: true })

export const distinct = (values: Iterable<string>): ReadonlyArray<string> => [...new Set(values)].sort()
