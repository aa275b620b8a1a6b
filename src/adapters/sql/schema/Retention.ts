import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** What has ended is found by its time. */
export const retention = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index deployments_deadline on deployments (deadline)`
})
