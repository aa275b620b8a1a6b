import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlAbiStore from "../../src/adapters/sql/AbiStore.js"
import * as Store from "../../src/adapters/sql/Store.js"
import * as Keccak from "../../src/domain/primitives/Keccak.js"
import * as Layers from "../support/journal/Layers.js"
import { type Database, suite } from "./AbiStore.suite.js"

/** The adapter over a database, and a way past it to many rows. */
const over = <E>(client: Layer.Layer<SqlClient.SqlClient, E>): Database => {
  const layer = SqlAbiStore.layer.pipe(Layer.provideMerge(Layer.fresh(client)), Layer.orDie)
  return {
    layer,
    fill: (account, events) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const rows = events.map(({ canonical }, index) => ({
          account_id: account,
          ordinal: index + 1,
          kind: "event",
          digest: Keccak.hashText(canonical),
          canonical
        }))
        for (const chunk of Store.chunks(rows)) yield* sql`insert into abi_definitions ${sql.insert(chunk)}`
      }).pipe(Effect.provide(layer))
  }
}

for (const [name, client] of Object.entries(Layers.clients())) suite(name, Effect.map(client, over))
