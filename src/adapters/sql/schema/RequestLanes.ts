import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** The submitting EOA of a request stands with the request: null where neither an op nor a transaction tells it. */
export const requestLanes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table requests add column signer text`
  yield* sql`
    update requests set signer = coalesce(
      (select authority from ops where ops.request_id = requests.request_id order by op_id desc limit 1),
      (select transactions.signer from transactions where direct = requests.request_id and direct is not null limit 1))`
})
