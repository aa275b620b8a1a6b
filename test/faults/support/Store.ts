import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import * as Postgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as Server from "../../support/postgres/Server.js"
import type * as Receiver from "./Receiver.js"
import type { Outage } from "./Scenario.js"

/** The database of a run, which a test may take away. */
export interface Store {
  /** As the configuration names it. */
  readonly address: { readonly path: string } | { readonly url: string }
  readonly away: (how: Outage["how"]) => Promise<void>
  readonly back: () => Promise<void>
  /** Whether it has been away since then, Unix milliseconds. */
  readonly wasAway: (since: number) => boolean
  /** All events of the journal, and its final requests. */
  readonly events: () => Promise<{
    readonly events: ReadonlyArray<Receiver.Told>
    readonly ended: ReadonlyArray<string>
  }>
  /** Nonces that the journal assigned and that no transaction, ours or foreign, has used. */
  readonly holes: (signer: string) => Promise<ReadonlyArray<string>>
}

type Kind = Pick<Store, "address" | "away" | "back">

let databases = 0

const postgres = async (server: Server.Server): Promise<Kind> => {
  const url = await Effect.runPromise(Server.createDatabase(server, `faults_${++databases}`))
  return {
    address: { url },
    away: async (how) => (how === "hangs" ? server.freeze() : server.halt()),
    back: async () => {
      server.thaw()
      await server.resume()
    }
  }
}

const sqlite = (folder: string): Kind => {
  const path = join(folder, "castellan.sqlite")
  let other: DatabaseSync | null = null
  return {
    address: { path },
    away: async () => {
      other = new DatabaseSync(path, { timeout: 5_000 })
      other.exec("begin exclusive")
    },
    back: async () => {
      other?.close()
      other = null
    }
  }
}

/** The database of a run in this folder; on the server, if a server runs. */
export const make = async (folder: string, server: Server.Server | null): Promise<Store> => {
  const { address, away, back } = server === null ? sqlite(folder) : await postgres(server)
  const client: Layer.Layer<SqlClient.SqlClient, Postgres.PostgresError | Sqlite.SqliteError> =
    "url" in address
      ? Postgres.layer({ url: Redacted.make(address.url) })
      : Sqlite.layer({ filename: address.path })
  let isAway = false
  let lastBack = Number.NEGATIVE_INFINITY
  return {
    address,
    away: async (how) => {
      isAway = true
      await away(how)
    },
    back: async () => {
      await back()
      if (isAway) lastBack = Date.now()
      isAway = false
    },
    wasAway: (since) => isAway || lastBack >= since,
    events: () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const told = yield* sql<{
            readonly request_id: string
            readonly sequence: number
            readonly kind: string
            readonly data: string | null
          }>`
            select requests.request_id, sequence, kind, data
            from request_events join requests on requests.request_no = request_events.request_no
            order by request_events.request_no, sequence`
          const final = yield* sql<{ readonly request_id: string }>`
            select request_id from requests where state = 'final'`
          return {
            events: told.map(({ data, kind, request_id, sequence }) => ({
              requestId: request_id,
              sequence,
              kind,
              data: data === null ? "{}" : JSON.stringify(JSON.parse(data))
            })),
            ended: final.map(({ request_id }) => request_id)
          }
        }).pipe(Effect.provide(client))
      ),
    holes: (signer) =>
      Effect.runPromise(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql<{ readonly nonce: string; readonly state: string }>`
            select nonce, state from transactions
            where lower(signer) = ${signer.toLowerCase()} and state in ('free', 'allocated', 'signed')
            order by nonce`
        ).pipe(
          Effect.map((rows) => rows.map(({ nonce, state }) => `${state} ${BigInt(nonce)}`)),
          Effect.provide(client)
        )
      )
  }
}
