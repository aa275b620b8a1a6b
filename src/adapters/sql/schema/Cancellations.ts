import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** Why what was not signed of a request never will be; null: it was not cancelled. */
export const cancellations = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    alter table requests add column cancelled text check (cancelled in ('request_cancelled', 'request_expired'))`
})
