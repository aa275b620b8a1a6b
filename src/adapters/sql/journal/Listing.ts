import * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { ListedRequest, ListQuestion } from "../../../application/ports/journal/Requests.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type * as Store from "../Store.js"

interface Row {
  readonly request_no: number | string
  readonly request_id: string
  readonly endpoint: string
  readonly chain_id: string
  readonly state: "open" | "final"
  readonly accepted_at: number | string
}

const toListed = (row: Row): ListedRequest => ({
  number: BigInt(row.request_no),
  requestId: row.request_id,
  endpoint: row.endpoint,
  chainId: BigInt(row.chain_id),
  state: row.state === "open" ? "pending" : "final",
  acceptedAt: Number(row.accepted_at)
})

export const list =
  ({ sql, transaction }: Store.Store) =>
  (
    accountId: AccountId,
    { after, limit, since, state, until }: ListQuestion
  ): Effect.Effect<ReadonlyArray<ListedRequest>, JournalError> =>
    transaction(
      Effect.map(
        sql<Row>`
          select request_no, request_id, endpoint, chain_id, state, accepted_at from requests
          where ${sql.and([
            sql`account_id = ${accountId}`,
            // A partial index serves a query that says its condition, as a literal.
            ...(state === undefined
              ? []
              : [sql.literal(state === "pending" ? "state = 'open'" : "state = 'final'")]),
            ...(since === undefined ? [] : [sql`accepted_at >= ${since}`]),
            ...(until === undefined ? [] : [sql`accepted_at < ${until}`]),
            ...(after === undefined
              ? []
              : [sql`(accepted_at, request_no) < (${after.acceptedAt}, ${after.number.toString()})`])
          ])}
          order by accepted_at desc, request_no desc limit ${limit}`,
        (rows) => rows.map(toListed)
      )
    )
