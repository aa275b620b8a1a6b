import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import * as ErrorCode from "./ErrorCode.js"
import * as Accounts from "./schema/Accounts.js"
import * as Journal from "./schema/Journal.js"
import * as Webhooks from "./schema/Webhooks.js"

export class MigrationsError extends Data.TaggedError("MigrationsError")<{ readonly message: string }> {}

const table = "castellan_migrations"

/**
 * By number: the migrator skips migrations up to the latest that ran. Processes of the previous version keep working during
 * and after a migration, so each only adds tables, and columns that inserts may omit. Only 0035 renames a table, and 0041
 * replaces it: such a process would write rows without their totals, or rows that nothing reads. Each must be quick, since
 * other processes wait.
 */
export const migrations = {
  "0032_schema": Effect.all(
    [
      Journal.journal,
      Accounts.abi,
      Accounts.accounts,
      Accounts.budgets,
      Accounts.audit,
      Accounts.rateCounts,
      Accounts.clockConfirmations,
      Webhooks.webhooks,
      Webhooks.watches
    ],
    { discard: true }
  ),
  "0033_op_rows": Journal.opRows,
  "0034_operators": Accounts.operators,
  "0035_budget_totals": Accounts.budgetTotals,
  "0036_unbound_deployments": Journal.unboundDeployments,
  "0037_previews": Journal.previews,
  "0038_policies": Accounts.policies,
  "0039_settings": Accounts.settings,
  "0040_requests_policies": Journal.policies,
  "0041_holds": Accounts.holds
}

const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** On PostgreSQL, the second of two processes that create a table concurrently fails. */
const isMadeMeanwhile = (error: unknown): boolean =>
  [" (23505)", " (42P07)", " (42710)"].includes(ErrorCode.suffix(error))

/** Other processes' work interfered: a deadlock, or a lock time-out. */
const isInTheWay = (error: unknown): boolean => [" (40P01)", " (55P03)"].includes(ErrorCode.suffix(error))

const newer = new MigrationsError({ message: "the database was written by a newer version of the program" })

const older = new MigrationsError({
  message:
    "the schema of the database is an older version's: start the service of this version, which brings it up to date, or use the command of that version"
})

const latestId = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly id: number | string | null }>`select max(migration_id) as id from ${sql(table)}`
)

/** Number of the latest migration in the database; null: it is new. */
const known: Effect.Effect<number | null, MigrationsError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql.onDialectOrElse({
    pg: () => sql`select 1 where to_regclass(${table}) is not null`,
    orElse: () => sql`select 1 from sqlite_master where type = 'table' and name = ${table}`
  })
  const [latest] = tables.length === 0 ? [] : yield* latestId
  return latest === undefined || latest.id === null ? null : Number(latest.id)
}).pipe(
  Effect.mapError(
    (error) => new MigrationsError({ message: `the database cannot be read${ErrorCode.suffix(error)}` })
  ),
  Effect.withTracerEnabled(false)
)

/** Whether this version can use the database, possibly after `run`. Does not change the schema. */
export const inspect: Effect.Effect<void, MigrationsError, SqlClient.SqlClient> = Effect.flatMap(
  known,
  (latest) => (latest !== null && latest > newest ? Effect.fail(newer) : Effect.void)
)

export const run: Effect.Effect<void, MigrationsError, SqlClient.SqlClient> = Effect.gen(function* () {
  yield* Effect.retry(Migrator.make({})({ loader: Migrator.fromRecord(migrations), table }), {
    times: 3,
    while: (error) => isMadeMeanwhile(error) || isInTheWay(error)
  })
  const [latest] = yield* latestId
  if (Number(latest?.id) > newest) return yield* newer
}).pipe(
  Effect.mapError((cause) =>
    cause instanceof MigrationsError
      ? cause
      : new MigrationsError({
          message: `the schema of the database cannot be brought up to date${ErrorCode.suffix(cause)}`
        })
  ),
  Effect.withTracerEnabled(false)
)

/** Fails on an older schema: processes of that version may be running, and could not restart after a migration. */
export const refuseOlder: Effect.Effect<void, MigrationsError, SqlClient.SqlClient> = Effect.flatMap(
  known,
  (latest) => (latest !== null && latest < newest ? Effect.fail(older) : Effect.void)
)

export const client: Effect.Effect<SqlClient.SqlClient, MigrationsError, SqlClient.SqlClient> =
  Effect.andThen(run, SqlClient.SqlClient)

/** A port stored in such a database. */
export type Stored<A, R = never> = Effect.Effect<A, MigrationsError, SqlClient.SqlClient | R>

export type StoredLayer<Id> = Layer.Layer<Id, MigrationsError, SqlClient.SqlClient>
