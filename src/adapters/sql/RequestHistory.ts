import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Entry, RequestHistory, RequestHistoryError } from "../../application/ports/RequestHistory.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"

interface Row {
  readonly request_no: number | string
  readonly request_id: string
  readonly account_id: string
  readonly endpoint: string
  readonly chain_id: string
  readonly state: "open" | "final" | "forgotten"
  readonly accepted_at: number | string
  readonly held: string | null
}

const entryOf = (row: Row): Entry => ({
  number: BigInt(row.request_no),
  requestId: row.request_id,
  accountId: row.account_id as AccountId,
  endpoint: row.endpoint,
  chainId: BigInt(row.chain_id),
  state: row.state !== "open" ? row.state : row.held === null ? "pending" : "held",
  acceptedAt: Number(row.accepted_at)
})

const failed = (error: unknown): RequestHistoryError =>
  new RequestHistoryError({ message: `the journal's store failed${ErrorCode.suffix(error)}` })

/** Reads the journal's table of requests, which the journal alone writes. */
export const make: Migrations.Stored<RequestHistory["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  return {
    find: ({ accountId, before, chainId, endpoint, limit, state }) =>
      sql<Row>`
        select request_no, request_id, account_id, endpoint, chain_id, state, accepted_at, held from requests
        where ${sql.and([
          sql`declined_at is null`,
          sql`request_no < ${before === undefined ? Number.MAX_SAFE_INTEGER : before.toString()}`,
          ...(accountId === undefined ? [] : [sql`account_id = ${accountId}`]),
          ...(chainId === undefined ? [] : [sql`chain_id = ${chainId.toString()}`]),
          ...(endpoint === undefined ? [] : [sql`endpoint = ${endpoint}`]),
          ...(state === undefined
            ? []
            : [sql`state = ${state === "pending" || state === "held" ? "open" : state}`]),
          ...(state === "held" ? [sql`held is not null`] : [])
        ])}
        order by request_no desc limit ${Math.min(Math.max(1, limit), 1_000)}`.pipe(
        Effect.withTracerEnabled(false),
        Effect.mapBoth({ onFailure: failed, onSuccess: (rows) => rows.map(entryOf) })
      )
  }
})

export const layer: Migrations.StoredLayer<RequestHistory> = Layer.effect(RequestHistory, make)
