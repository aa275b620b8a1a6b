import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** An account's requests by the time of their acceptance; those that are not final are few, and found among many. */
export const listing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index requests_account on requests (account_id, accepted_at, request_no)`
  yield* sql`
    create index requests_account_open on requests (account_id, accepted_at, request_no) where state = 'open'`
})
