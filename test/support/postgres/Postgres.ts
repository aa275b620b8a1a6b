import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as SqlClient from "effect/sql/SqlClient"
import { afterAll } from "vitest"
import * as Postgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Tools from "../Tools.js"
import * as Server from "./Server.js"

/** The PostgreSQL of one test file. */
export interface Databases {
  /** The server; started on first use. */
  readonly server: Effect.Effect<Server.Server>
  /** Client options of a fresh, empty database. */
  readonly fresh: Effect.Effect<{ readonly url: Redacted.Redacted<string> }>
  /** A client of a fresh database on each use. */
  readonly layer: Layer.Layer<SqlClient.SqlClient>
}

/** One server for the test file that calls this: started on first use, stopped when the file's tests are over. */
export const perFile = (): Databases => {
  let started: Promise<Server.Server> | undefined
  let count = 0
  afterAll(async () => (await started)?.stop())
  const server = Effect.promise(async () => {
    await Tools.need("PostgreSQL")
    started ??= Server.start()
    return started
  })
  const fresh = Effect.flatMap(server, (running) =>
    Effect.map(Server.createDatabase(running, `test_${++count}`), (url) => ({ url: Redacted.make(url) }))
  )
  return {
    server,
    fresh,
    layer: Layer.fresh(Layer.unwrap(Effect.map(fresh, Postgres.layer))).pipe(Layer.orDie)
  }
}
