import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** What the endpoint of a request keeps for itself: JSON or hex, perhaps deflated. */
export const requestNotes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table requests add column note text`
})
