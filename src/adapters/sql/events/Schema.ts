import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/**
 * What became of each request, in order. No reference to `requests`: it would lock the request's row, which others lock
 * before its ops, after them.
 */
export const requestEvents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const clustered = sql.onDialectOrElse({
    pg: () => sql.literal(""),
    orElse: () => sql.literal("without rowid")
  })
  yield* sql`
    create table request_events (
      request_no bigint not null,
      sequence integer not null,
      kind text not null,
      data text,
      told_at bigint not null,
      primary key (request_no, sequence)
    ) ${clustered}`
})

/**
 * Whether `submitted` was told of a transaction, or of an op at a remote bundler. Processes of the version before tell it when
 * they sign, and name no such column.
 */
export const submissions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table transactions add column submitted smallint not null default 1`
  yield* sql`alter table handovers add column submitted smallint not null default 1`
})
