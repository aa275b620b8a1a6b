import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** What the endpoint of a request keeps for itself: JSON or hex, perhaps deflated. */
export const requestNotes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table requests add column note text`
})

/** How many operations or accounts a request has: accepted work is bounded by it. One, as long as it is not known. */
export const requestElements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table requests add column elements integer not null default 1`
})
