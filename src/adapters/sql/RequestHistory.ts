import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Entry, RequestHistory, RequestHistoryError } from "../../application/ports/RequestHistory.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"

interface Row extends Omit<Entry, "chainId" | "number" | "state"> {
  readonly number: number | string
  readonly chainId: string
  readonly state: "open" | "final" | "forgotten"
  readonly held: string | null
}

const entryOf = ({ held, ...row }: Row): Entry => ({
  ...row,
  number: BigInt(row.number),
  chainId: BigInt(row.chainId),
  state: row.state !== "open" ? row.state : held === null ? "pending" : "held"
})

const failed = (error: unknown): RequestHistoryError =>
  new RequestHistoryError({ message: `the journal's store failed${ErrorCode.suffix(error)}` })

/** Reads the journal's table of requests; only the journal writes it. */
export const make: Migrations.Stored<RequestHistory["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  return {
    find: ({ accountId, before, chainId, endpoint, limit, state }) =>
      sql<Row>`
        select request_no as number, request_id as "requestId", account_id as "accountId", endpoint,
          chain_id as "chainId", state, accepted_at as "acceptedAt", held
        from requests
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
