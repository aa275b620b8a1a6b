import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** A declined request is a forgotten one that never was accepted: its id is taken, until its time is over. */
export const declinedRequests = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table requests add column declined_at bigint`
  yield* sql`create index requests_declined on requests (declined_at) where declined_at is not null`
  // What refers to a request is looked for when its row is deleted.
  yield* sql`create index deployments_request on deployments (request_id)`
})
