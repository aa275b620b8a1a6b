import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/**
 * One row for every lane that was ever claimed: its holder is one instance of the journal. A
 * request's `lane_key` is JSON, null where it is not known. A nonce keeps the epoch in which it was handed out.
 */
export const lanes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table lanes (
      chain_id text not null,
      signer text not null,
      epoch bigint not null,
      holder text not null,
      process text not null,
      primary key (chain_id, signer)
    )`
  yield* sql`alter table requests add column lane_key text`
  yield* sql`alter table transactions add column epoch bigint not null default 0`
})
