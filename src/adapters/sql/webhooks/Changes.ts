import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { EndpointChange, Webhooks, WebhooksError } from "../../../application/ports/Webhooks.js"
import type * as Store from "../Store.js"

/** Logs a change of an existing endpoint, in the transaction of the change. */
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
        sql<EndpointChange>`
          select at, webhook_id as "webhookId", watch_id as "watchId", account_id as "accountId", what,
            changed_by as by
          from webhook_changes
          where ${webhookId === null ? sql.literal("change_no > 0") : sql`webhook_id = ${webhookId}`}
          order by change_no desc limit ${limit}`,
        (rows) => rows.map((row) => ({ ...row }))
      )
    )
