import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** The instances that hold a reservation, each with a space behind it: it is given back with the last of them. */
export const budgetHolders = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table budget_holds add column holders text not null default ''`
})
