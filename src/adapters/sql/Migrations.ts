import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import { clockConfirmations } from "./clock/Schema.js"
import * as ErrorCode from "./ErrorCode.js"
import { requestEvents, submissions } from "./events/Schema.js"
import * as Schedules from "./journal/Schedules.js"
import { requestMetadata } from "./listing/Schema.js"
import { abi } from "./schema/Abi.js"
import { accountLimits, accounts } from "./schema/Accounts.js"
import { audit } from "./schema/Audit.js"
import { budgetHolders, budgets } from "./schema/Budgets.js"
import { handovers, landings } from "./schema/Handovers.js"
import { journal } from "./schema/Journal.js"
import { lanes } from "./schema/LaneClaims.js"
import { opRows } from "./schema/OpRows.js"
import { rateCounts } from "./schema/RateCounts.js"
import { recovery, unreadNonces } from "./schema/Recovery.js"
import {
  cancellations,
  declinedRequests,
  listing,
  requestElements,
  requestLanes,
  requestNotes,
  retention
} from "./schema/Requests.js"
import { shorterIndexes } from "./schema/ShorterIndexes.js"
import { watches, watchParts } from "./watches/Schema.js"
import { watchChanges, webhookChanges, webhookSecrets, webhooks } from "./webhooks/Schema.js"

/** The schema cannot be brought to what this version of the program expects. */
export class MigrationsError extends Data.TaggedError("MigrationsError")<{ readonly message: string }> {}

const table = "castellan_migrations"

/**
 * By number: the migrator skips one whose number is not above the latest that ran. Processes of the version before go on
 * while one runs and after it, so that each only adds: tables, and columns that an insert need not name. None takes long:
 * others wait for it meanwhile.
 */
export const migrations = {
  "0001_journal": journal,
  "0002_abi": abi,
  "0003_handovers": handovers,
  "0004_accounts": accounts,
  "0005_budgets": budgets,
  "0006_audit": audit,
  "0007_rate_counts": rateCounts,
  "0008_request_lanes": requestLanes,
  "0009_lanes": lanes,
  "0010_retention": retention,
  "0011_declined_requests": declinedRequests,
  "0012_cancellations": cancellations,
  "0013_budget_holders": budgetHolders,
  "0014_request_notes": requestNotes,
  "0015_listing": listing,
  "0016_request_events": requestEvents,
  "0017_webhooks": webhooks,
  "0018_request_elements": requestElements,
  "0019_request_metadata": requestMetadata,
  "0020_schedules": Schedules.schema,
  "0021_webhook_changes": webhookChanges,
  "0022_watches": watches,
  "0023_watch_changes": watchChanges,
  "0024_landings": landings,
  "0025_account_limits": accountLimits,
  "0026_submissions": submissions,
  "0027_watch_parts": watchParts,
  "0028_webhook_secrets": webhookSecrets,
  "0029_shorter_indexes": shorterIndexes,
  "0030_recovery": recovery,
  "0031_clock_confirmations": clockConfirmations,
  "0032_unread_nonces": unreadNonces,
  "0033_op_rows": opRows
}

const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** On PostgreSQL, of two processes that make a table at once the second one fails. */
const isMadeMeanwhile = (error: unknown): boolean =>
  [" (23505)", " (42P07)", " (42710)"].includes(ErrorCode.suffix(error))

/** Work of processes that go on was in its way: a deadlock, or a lock that it did not get in time. */
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

/** The number of the latest migration that the database has had; null: it is new. */
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
    (error) => new MigrationsError({ message: `the database can not be read${ErrorCode.suffix(error)}` })
  ),
  Effect.withTracerEnabled(false)
)

/** Whether this version can use the database, whose schema stays as it is: `run` brings an older one up to date. */
export const inspect: Effect.Effect<void, MigrationsError, SqlClient.SqlClient> = Effect.flatMap(
  known,
  (latest) => (latest !== null && latest > newest ? Effect.fail(newer) : Effect.void)
)

/** Brings the schema up to date, in one transaction. */
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

/**
 * Fails where the schema is an older version's: processes of that version may be at work, and start no more once it is brought
 * up to date.
 */
export const refuseOlder: Effect.Effect<void, MigrationsError, SqlClient.SqlClient> = Effect.flatMap(
  known,
  (latest) => (latest !== null && latest < newest ? Effect.fail(older) : Effect.void)
)

/** The client of a database whose schema is up to date. */
export const client: Effect.Effect<SqlClient.SqlClient, MigrationsError, SqlClient.SqlClient> =
  Effect.andThen(run, SqlClient.SqlClient)

/** A port that is kept in such a database. */
export type Stored<A, R = never> = Effect.Effect<A, MigrationsError, SqlClient.SqlClient | R>

/** The layer of one. */
export type StoredLayer<Id> = Layer.Layer<Id, MigrationsError, SqlClient.SqlClient>
