import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { EventKind } from "../../../application/ports/journal/Events.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type { WatchEvent } from "../../../application/ports/Watches.js"
import type { Delivery, DeliveryRef, Webhooks, WebhooksError } from "../../../application/ports/Webhooks.js"
import * as Terms from "../listing/Terms.js"
import * as Seal from "../Seal.js"
import * as Store from "../Store.js"
import * as GroupCommit from "../sqlite/GroupCommit.js"
import * as Changes from "./Changes.js"
import * as Secrets from "./Secrets.js"

/**
 * Claims endpoints, and reads and changes the deliveries of events; `Webhooks` offers it to `Deliver` and to commands.
 *
 * Gotchas: `request_no` of a delivery is a request's number, or the negative number of a watch.
 */

export const urlName = (webhookId: string): string => `webhook url ${webhookId}`

type Asked = <A>(effect: Effect.Effect<A, WebhooksError | SqlError>) => Effect.Effect<A, WebhooksError>

interface Row {
  /** Null: the event belongs to a watch. */
  readonly request_id: string | null
  readonly endpoint: string | null
  readonly watch_id: string | null
  readonly chain_id: string
  readonly metadata: string | null
  readonly sequence: number
  readonly kind: string
  readonly data: string | null
  readonly told_at: number | string
  readonly attempts: number
  readonly failing_since: number | string | null
  readonly last_error: string | null
}

const toDelivery = (row: Row): Delivery => {
  const delivery = {
    chainId: BigInt(row.chain_id),
    attempts: row.attempts,
    failingSince: row.failing_since === null ? null : Number(row.failing_since),
    lastError: row.last_error
  }
  const event = {
    sequence: row.sequence,
    data: row.data === null ? {} : JSON.parse(row.data),
    at: Number(row.told_at)
  }
  return row.watch_id === null
    ? {
        ...delivery,
        requestId: row.request_id ?? "",
        endpoint: row.endpoint ?? "",
        metadata: Terms.read(row.metadata),
        event: { ...event, kind: row.kind as EventKind }
      }
    : { ...delivery, watchId: row.watch_id, event: { ...event, kind: row.kind as WatchEvent["kind"] } }
}

interface Endpoint {
  readonly webhook_no: number | string
  readonly account_id: AccountId
  readonly url: string
  readonly secret: string
}

export const make = (
  store: Store.Store,
  asked: Asked,
  /** Run read-only methods; `lookedOnce` runs a single statement. */
  looked: Asked,
  lookedOnce: Asked
): Pick<
  Webhooks["Service"],
  "claim" | "dead" | "delivered" | "due" | "failed" | "next" | "oldest" | "redeliver" | "release" | "rest"
> => {
  const { seal, sql } = store
  const columnsWith = (data: string) =>
    sql.literal(
      `requests.request_id, requests.endpoint, requests.metadata, watches.watch_id,
      coalesce(requests.chain_id, watch_sources.chain_id) as chain_id, webhook_deliveries.sequence,
      coalesce(request_events.kind, watch_events.kind) as kind,
      ${data} as data,
      coalesce(request_events.told_at, watch_events.told_at) as told_at,
      webhook_deliveries.attempts, webhook_deliveries.failing_since, webhook_deliveries.last_error`
    )
  const columns = columnsWith("coalesce(request_events.data, watch_events.data)")
  // A watch's deliveries have its negated number as `request_no`.
  const joined = sql.literal(
    `webhook_deliveries
      left join request_events on request_events.request_no = webhook_deliveries.request_no
        and request_events.sequence = webhook_deliveries.sequence
      left join requests on requests.request_no = request_events.request_no
      left join watch_events on watch_events.watch_no = -webhook_deliveries.request_no
        and watch_events.sequence = webhook_deliveries.sequence
      left join watches on watches.watch_no = watch_events.watch_no
      left join watch_sources on watch_sources.source_no = watches.source_no`
  )
  const isKnown = sql.literal("(requests.request_id is not null or watches.watch_id is not null)")
  const numberOf = (webhookId: string) =>
    sql`(select webhooks.webhook_no from webhooks where webhooks.webhook_id = ${webhookId})`
  const ofId = (id: string, webhookId: string) =>
    sql`request_no = coalesce(
        (select requests.request_no from requests where requests.request_id = ${id}),
        (select -watches.watch_no from watches where watches.watch_id = ${id}))
      and webhook_no = ${numberOf(webhookId)}`
  const ofOne = (delivery: DeliveryRef) =>
    ofId("watchId" in delivery ? delivery.watchId : delivery.requestId, delivery.webhookId)
  return {
    due: (process) =>
      // Need not be durable: nothing leaves the process yet.
      Effect.provideService(
        lookedOnce(
          Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis
            const rows = yield* sql<{ readonly webhook_id: string }>`
              select webhook_id from webhooks
              where webhook_no > 0 and state = 'enabled' and rests_until <= ${now}
                and ${Store.isFree(store, process, now)}
                and exists (
                  select 1 from webhook_deliveries
                  where webhook_deliveries.webhook_no = webhooks.webhook_no
                    and webhook_deliveries.state = 'waiting' and webhook_deliveries.due_at <= ${now})`
            return rows.map((row) => row.webhook_id)
          })
        ),
        GroupCommit.answered,
        "committed"
      ),
    claim: (webhookId, process, until) =>
      asked(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* sql`
            update webhooks set claimed_by = ${process}, claimed_until = ${until}
            where webhook_id = ${webhookId} and state = 'enabled'
              and ${Store.isFree(store, process, now)}
            returning webhook_no`
          return rows.length > 0
        })
      ),
    release: (webhookId, process) =>
      asked(
        Effect.asVoid(sql`
          update webhooks set claimed_until = 0 where webhook_id = ${webhookId} and claimed_by = ${process}`)
      ),
    next: (webhookId, limit) =>
      // A delivered event and its number must survive a crash of the machine.
      Effect.provideService(
        looked(
          Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis
            const [row] = yield* sql<Endpoint>`
            select webhook_no, account_id, url, secret from webhooks
            where webhook_id = ${webhookId} and state = 'enabled' and rests_until <= ${now}`
            if (row === undefined) return null
            const url = yield* Seal.openUrl(seal, urlName(webhookId), row.url)
            const secrets = yield* Secrets.open(store, webhookId, row.secret, now)
            if (url === null || secrets._tag === "None") return null
            const rows = yield* sql<Row>`
            select ${columns} from ${joined}
            where webhook_deliveries.webhook_no = ${row.webhook_no} and webhook_deliveries.state = 'waiting'
              and webhook_deliveries.due_at <= ${now} and ${isKnown}
              and not exists (
                select 1 from webhook_deliveries as earlier
                where earlier.request_no = webhook_deliveries.request_no
                  and earlier.sequence < webhook_deliveries.sequence
                  and earlier.webhook_no = webhook_deliveries.webhook_no and earlier.state = 'waiting')
            order by webhook_deliveries.due_at limit ${limit}`
            const target = { webhookId, accountId: row.account_id, url, secrets: secrets.value }
            return { target, deliveries: rows.map(toDelivery) }
          })
        ),
        GroupCommit.answered,
        "whole"
      ),
    delivered: (delivery) =>
      asked(
        Effect.asVoid(sql`
          delete from webhook_deliveries
          where ${ofOne(delivery)} and sequence = ${delivery.sequence}`)
      ),
    failed: (delivery, error, retryAt) =>
      asked(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const [noted] = yield* sql`
            update webhook_deliveries set attempts = attempts + 1, last_error = ${error},
              failing_since = coalesce(failing_since, cast(${now} as bigint)),
              state = ${retryAt === null ? "dead" : "waiting"}
            where ${ofOne(delivery)} and sequence = ${delivery.sequence} and state = 'waiting'
            returning sequence`
          // Another process may have delivered it; its later events must not wait.
          if (noted !== undefined && retryAt !== null)
            yield* sql`
              update webhook_deliveries set due_at = ${retryAt}
              where ${ofOne(delivery)} and sequence >= ${delivery.sequence} and state = 'waiting'`
        })
      ),
    rest: (webhookId, until) =>
      asked(Effect.asVoid(sql`update webhooks set rests_until = ${until} where webhook_id = ${webhookId}`)),
    dead: (webhookId, limit) =>
      asked(
        Effect.map(
          sql<Row>`
            select ${columnsWith("null")} from ${joined}
            where webhook_deliveries.webhook_no = ${numberOf(webhookId)} and webhook_deliveries.state = 'dead'
              and ${isKnown}
            order by webhook_deliveries.owed_at, webhook_deliveries.request_no, webhook_deliveries.sequence
            limit ${limit}`,
          (rows) => rows.map(toDelivery)
        )
      ),
    redeliver: (webhookId, id, by) =>
      asked(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const which = id === null ? sql`webhook_no = ${numberOf(webhookId)}` : ofId(id, webhookId)
          const rows = yield* sql`
            update webhook_deliveries
            set state = 'waiting', attempts = 0, failing_since = null, last_error = null, due_at = ${now}
            where ${which} and state = 'dead'
            returning sequence`
          yield* Changes.log(store, webhookId, "redelivered", by)
          return rows.length
        })
      ),
    oldest: asked(
      Effect.map(
        sql<{ readonly owed_at: number | string }>`
          select webhook_deliveries.owed_at from webhook_deliveries
          join webhooks on webhooks.webhook_no = webhook_deliveries.webhook_no
          where webhook_deliveries.state = 'waiting' and webhooks.state = 'enabled'
          order by webhook_deliveries.owed_at limit 1`,
        ([row]) => (row === undefined ? null : Number(row.owed_at))
      )
    )
  }
}
