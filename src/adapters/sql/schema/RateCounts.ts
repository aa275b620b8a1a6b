import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"

/**
 * Requests of an account in its newest minute and hour, which begin at these Unix milliseconds. On PostgreSQL the
 * counts are not worth a write to the disk: a crash of the server forgets them.
 */
export const rateCounts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const table = sql.onDialectOrElse({
    pg: () => sql.literal("unlogged table"),
    orElse: () => sql.literal("table")
  })
  yield* sql`
    create ${table} rate_counts (
      account_id text primary key,
      minute bigint not null,
      in_minute integer not null,
      hour bigint not null,
      in_hour integer not null
    )`
})
