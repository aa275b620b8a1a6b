import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/** One row for every op that a remote bundler has, or that landed through it and is not yet at settled depth. `rpc` is sealed. */
export const handovers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create table handovers (
      op_id bigint primary key references ops (op_id),
      rpc text not null,
      trust text not null check (trust in ('caller', 'operator')),
      since text not null,
      signed text not null
    )`
})
