import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type { EndpointChange, Webhooks, WebhooksError } from "../../../application/ports/Webhooks.js"
import type * as Store from "../Store.js"

interface Row {
  readonly at: number | string
  readonly webhook_id: string
  readonly watch_id: string | null
  readonly account_id: AccountId
  readonly what: EndpointChange["what"]
  readonly changed_by: string
}

/** Logs a change of an endpoint that is there, in the transaction that makes it. */
export const log = ({ sql }: Store.Store, webhookId: string, what: EndpointChange["what"], by: string) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => sql`
      insert into webhook_changes (at, webhook_id, account_id, what, changed_by)
      select cast(${now} as bigint), webhook_id, account_id, cast(${what} as text), cast(${by} as text)
      from webhooks where webhook_id = ${webhookId}`
  )

export const list =
  (
    { sql }: Store.Store,
    asked: <A>(effect: Effect.Effect<A, WebhooksError | SqlError>) => Effect.Effect<A, WebhooksError>
  ): Webhooks["Service"]["changes"] =>
  (webhookId, limit) =>
    asked(
      Effect.map(
        sql<Row>`
          select at, webhook_id, watch_id, account_id, what, changed_by from webhook_changes
          where ${webhookId === null ? sql.literal("change_no > 0") : sql`webhook_id = ${webhookId}`}
          order by change_no desc limit ${limit}`,
        (rows) =>
          rows.map(({ account_id, at, changed_by, watch_id, webhook_id, what }) => ({
            at: Number(at),
            webhookId: webhook_id,
            watchId: watch_id,
            accountId: account_id,
            what,
            by: changed_by
          }))
      )
    )
