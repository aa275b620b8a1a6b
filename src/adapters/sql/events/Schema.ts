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
