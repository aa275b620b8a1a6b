import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as SqlClient from "effect/sql/SqlClient"
import { afterAll } from "vitest"
import * as Postgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Tools from "../Tools.js"
import * as Server from "./Server.js"

/** Databases of one test file. */
export interface Databases {
  /** Client options of a fresh, empty database. */
  readonly fresh: Effect.Effect<{ readonly url: Redacted.Redacted<string> }>
  /** A client of a fresh database on each use. */
  readonly layer: Layer.Layer<SqlClient.SqlClient>
}

const start = async (): Promise<Server.Server> => {
  await Tools.need("PostgreSQL")
  return Server.start()
}

/** Databases that `server` made for the file that calls this are dropped after its tests. */
const on = (server: () => Promise<Server.Server>): Databases => {
  const made: Array<string> = []
  afterAll(async () => {
    if (made.length > 0) await Effect.runPromise(Server.dropDatabases(await server(), made))
  })
  const fresh = Effect.flatMap(Effect.promise(server), (running) => {
    const name = `test_${randomUUID()}`
    made.push(name)
    return Effect.map(Server.createDatabase(running, name), (url) => ({ url: Redacted.make(url) }))
  })
  return {
    fresh,
    layer: Layer.fresh(Layer.unwrap(Effect.map(fresh, Postgres.layer))).pipe(Layer.orDie)
  }
}

let shared: Promise<Server.Server> | undefined

/** Databases of a server that all files of this process share: started on first use, ended with the process. */
export const perFile = (): Databases => on(() => (shared ??= start()))

/** Databases of a server that only this file has, for tests that end it or change its settings. */
export const alone = (): Databases & {
  /** The server; started on first use, stopped when the file's tests are over. */
  readonly server: Effect.Effect<Server.Server>
} => {
  let started: Promise<Server.Server> | undefined
  afterAll(async () => (await started)?.stop())
  const server = () => (started ??= start())
  return { ...on(server), server: Effect.promise(server) }
}
