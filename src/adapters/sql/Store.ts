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

/** The connection of a journal, and how its methods use it. */
export interface Store {
  readonly sql: SqlClient.SqlClient
  /** Runs one method: all of it is durable, or none of it is. A database error becomes a `JournalError`. */
  readonly transaction: <A, E>(
    effect: Effect.Effect<A, E>
  ) => Effect.Effect<A, Exclude<E, SqlError> | JournalError>
  /** The same of one that only reads: all that it reads is of one moment. */
  readonly reading: Store["transaction"]
  /** The same of one statement, which is of one moment by itself, or of several that need not be of the same. */
  readonly query: Store["transaction"]
  /** The same of one that keeps out others which lock one of these names: it begins when none of them does. */
  readonly locking: (names: ReadonlyArray<string>) => Store["transaction"]
  /** Waits until everything that was committed before survives the machine. */
  readonly durable: Effect.Effect<void, JournalError>
  /** Keeps others that lock the same name out until the transaction ends. */
  readonly lock: (name: string) => Effect.Effect<void, SqlError>
  /** End of a query whose rows are kept from others until the transaction ends. */
  readonly forUpdate: Fragment
  /** End of a query whose rows nobody changes until the transaction ends. */
  readonly forShare: Fragment
  /** The name of this instance of the journal, as the holder of lanes. */
  readonly instance: string
  readonly lineage: Lineage.Lineage
  readonly seal: Seal.Seal
}

export interface Options {
  /** What requests and nodes are sealed with at rest. The same one opens them: keep it as long as the database. */
  readonly sealingKey: Redacted.Redacted<string>
}

const storeFailed = (error: SqlError): JournalError =>
  new JournalError({ message: `the journal's store failed${ErrorCode.suffix(error)}` })

export const isSqlError = (error: unknown): error is SqlError => error instanceof SqlError

/** PostgreSQL undid one of two transactions that stood in each other's way: it may be run again. */
export const isBroken = (error: unknown): boolean =>
  isSqlError(error) && [" (40001)", " (40P01)"].includes(ErrorCode.suffix(error))

export const isSqlite = (client: SqlClient.SqlClient): client is SqliteClient => "read" in client

/** What a process on SQLite loads nothing of. */
export const isPostgres = (client: SqlClient.SqlClient): client is PostgresClient => "ofOneMoment" in client

/** Runs an effect over the database. */
type Run = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>

/** All of the effect is durable, or none of it is. Where the database is SQLite, others wait while it waits. */
export const transaction = (sql: SqlClient.SqlClient): Run => sql.withTransaction

/** The same for one that only reads: all that it reads is of one moment. */
export const reading = (sql: SqlClient.SqlClient): Run => {
  if (isSqlite(sql)) return sql.read
  return isPostgres(sql) ? sql.ofOneMoment : sql.withTransaction
}

const query = (sql: SqlClient.SqlClient): Run =>
  // Spans of statements carry their text.
  isSqlite(sql) ? sql.query : Effect.withTracerEnabled(false)

/** PostgreSQL answers no commit before that. */
export const durable = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError> =>
  isSqlite(sql) ? sql.durable : Effect.void

/** Keeps others that lock the same name out until the transaction ends. */
export const lock =
  (sql: SqlClient.SqlClient) =>
  (name: string): Effect.Effect<void, SqlError> =>
    isPostgres(sql)
      ? Effect.asVoid(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`)
      : Effect.void

/** The same for an effect before which nobody else may have a lock of one of the names. */
const locking = (sql: SqlClient.SqlClient, names: ReadonlyArray<string>): Run =>
  // In one order, so that nobody waits for who waits for him.
  isPostgres(sql) ? sql.locking(distinct(names)) : transaction(sql)

/** SQLite has one writer at a time: a transaction keeps all others out since it began. */
const onPostgres = (sql: SqlClient.SqlClient, text: string): Fragment =>
  sql.literal(isPostgres(sql) ? text : "")

const told = <A, E>(
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
      lineage.intact(told(sql, run(effect)))
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

/** End of a query whose rows of this table nobody removes until the transaction ends; others may change them. */
export const forKeyShare = ({ sql }: Pick<Store, "sql">, table: string): Fragment =>
  onPostgres(sql, `for key share of ${table}`)

/**
 * No claim of a row lasts so long, milliseconds: one that seems to was made while the clock was ahead, perhaps by a process
 * that is gone.
 */
const longestClaimMillis = 300_000

/** Whether no other process than this one has claimed the row. */
export const isFree = ({ sql }: Pick<Store, "sql">, process: string, now: number): Fragment => sql`
  (claimed_until <= ${now} or claimed_until > ${now + longestClaimMillis} or claimed_by = ${process})`

/** A call that contradicts what the journal holds. */
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

/** Rows of one statement: the number of its parameters is bounded. */
export const chunks = <A>(
  values: ReadonlyArray<A>,
  size = 500
): ReadonlyArray<Arr.NonEmptyReadonlyArray<A>> =>
  Arr.isReadonlyArrayNonEmpty(values) ? Arr.chunksOf(values, size) : []

/** Runs the statement for as many of the values at a time as it may have, and gives all of its rows. */
export const inChunks = <A, Row, E>(
  values: ReadonlyArray<A>,
  statement: (chunk: Arr.NonEmptyReadonlyArray<A>) => Effect.Effect<ReadonlyArray<Row>, E>
): Effect.Effect<ReadonlyArray<Row>, E> =>
  Effect.map(Effect.forEach(chunks(values), statement), (rows) => rows.flat())

/** Runs a statement for each chunk and drops its rows. */
export const forChunks = <A, B, E>(
  values: ReadonlyArray<A>,
  statement: (chunk: Arr.NonEmptyReadonlyArray<A>) => Effect.Effect<B, E>,
  size?: number
): Effect.Effect<void, E> => Effect.forEach(chunks(values, size), statement, { discard: true })

export const distinct = (values: Iterable<string>): ReadonlyArray<string> => [...new Set(values)].sort()
