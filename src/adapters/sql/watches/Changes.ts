import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { EndpointChange } from "../../../application/ports/Webhooks.js"
import type * as Store from "../Store.js"

/** Logs a change of a watch that is there among those of its endpoint, in the transaction that makes it. */
export const log = ({ sql }: Store.Store, watchId: string, what: EndpointChange["what"], by: string) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => sql`
      insert into webhook_changes (at, webhook_id, watch_id, account_id, what, changed_by)
      select cast(${now} as bigint), webhooks.webhook_id, watches.watch_id, watches.account_id,
        cast(${what} as text), cast(${by} as text)
      from watches join webhooks on webhooks.webhook_no = watches.webhook_no
      where watches.watch_id = ${watchId}`
  )
