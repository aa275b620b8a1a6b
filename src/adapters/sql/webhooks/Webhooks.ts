import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { SqlError } from "effect/sql/SqlError"
import type { EventKind } from "../../../application/ports/journal/Events.js"
import {
  type EndpointChange,
  type Webhook,
  Webhooks,
  WebhooksError
} from "../../../application/ports/Webhooks.js"
import * as Migrations from "../Migrations.js"
import * as Seal from "../Seal.js"
import * as Store from "../Store.js"
import * as Registry from "../watches/Registry.js"
import * as Changes from "./Changes.js"
import * as Deliveries from "./Deliveries.js"
import * as Secrets from "./Secrets.js"

/** Most webhooks per account. Each costs a row per event. */
const mostOfAccount = 10

interface Row extends Omit<Webhook, "kinds" | "url"> {
  readonly url: string
  readonly kinds: string
}

const kindsOf = (column: string): ReadonlyArray<EventKind> =>
  column.split(" ").filter((kind) => kind !== "") as ReadonlyArray<EventKind>

const columnOf = (kinds: ReadonlyArray<EventKind>): string =>
  kinds.length === 0 ? "" : ` ${[...new Set(kinds)].join(" ")} `

const toWebhook =
  ({ seal }: Store.Store) =>
  (row: Row): Effect.Effect<Webhook> =>
    Effect.map(Seal.openUrl(seal, Deliveries.urlName(row.webhookId), row.url), (url) => ({
      ...row,
      url,
      kinds: kindsOf(row.kinds)
    }))

export const make = (options: Store.Options): Migrations.Stored<Webhooks["Service"]> =>
  Effect.gen(function* () {
    const store = Store.make(yield* Migrations.client, options)
    const { seal, sql } = store
    const answering =
      (run: Store.Store["transaction"]) =>
      <A>(effect: Effect.Effect<A, WebhooksError | SqlError>) =>
        Effect.mapError(run(effect), (error) =>
          error instanceof WebhooksError
            ? error
            : new WebhooksError({ reason: "unavailable", message: error.message })
        )
    const asked = answering(store.transaction)
    const counts = sql.literal(
      ["waiting", "dead"]
        .map(
          (state) => `(select count(*) from webhook_deliveries
            where webhook_deliveries.webhook_no = webhooks.webhook_no
              and webhook_deliveries.state = '${state}') as ${state}`
        )
        .join(", ")
    )

    const changed = (
      webhookId: string,
      what: EndpointChange["what"],
      by: string,
      update: Effect.Effect<ReadonlyArray<unknown>, SqlError>
    ) =>
      asked(
        Effect.gen(function* () {
          if ((yield* update).length === 0) return false
          yield* Changes.log(store, webhookId, what, by)
          return true
        })
      )

    return {
      ...Deliveries.make(store, asked, answering(store.reading), answering(store.query)),
      changes: Changes.list(store, asked),
      add: (accountId, url, kinds, by) =>
        asked(
          Effect.gen(function* () {
            yield* store.lock(`webhooks:${accountId}`)
            const known = yield* sql`select webhook_no from webhooks where account_id = ${accountId}`
            if (known.length >= mostOfAccount)
              return yield* new WebhooksError({
                reason: "tooMany",
                message: `an account has at most ${mostOfAccount} webhooks; remove one first`
              })
            const webhookId = randomUUID()
            const { sealed, secret } = Secrets.fresh(store, webhookId)
            yield* sql`
              insert into webhooks ${sql.insert({
                webhook_id: webhookId,
                account_id: accountId,
                url: seal.close(Deliveries.urlName(webhookId), Redacted.value(url)),
                kinds: columnOf(kinds),
                state: "enabled",
                secret: sealed,
                created_at: yield* Clock.currentTimeMillis
              })}`
            yield* Changes.log(store, webhookId, "added", by)
            return { webhookId, secret }
          })
        ),
      list: (accountId) =>
        asked(
          Effect.flatMap(
            sql<Row>`
              select webhook_id as "webhookId", account_id as "accountId", url, kinds, state,
                created_at as "createdAt", ${counts}
              from webhooks
              where ${accountId === null ? sql.literal("webhook_no > 0") : sql`account_id = ${accountId}`}
              order by webhook_no`,
            (rows) => Effect.forEach(rows, toWebhook(store))
          )
        ),
      setState: (webhookId, state, by) =>
        changed(
          webhookId,
          state,
          by,
          sql`
            update webhooks set state = ${state}, rests_until = 0 where webhook_id = ${webhookId}
            returning webhook_no`
        ),
      setKinds: (webhookId, kinds, by) =>
        changed(
          webhookId,
          "kinds",
          by,
          sql`update webhooks set kinds = ${columnOf(kinds)} where webhook_id = ${webhookId} returning webhook_no`
        ),
      rotate: Secrets.rotate(store, asked),
      remove: (webhookId, by) =>
        asked(
          Effect.gen(function* () {
            const watches = sql`
              select watch_no from watches
              where webhook_no = (select webhook_no from webhooks where webhook_id = ${webhookId})`
            // Locks in the order of a watch's step: the source, then the endpoint.
            const sources = yield* sql<{ readonly source_no: number }>`
              update watch_sources set revision = revision + 1
              where source_no in (select source_no from watches where watch_no in (${watches}))
              returning source_no`
            // Under the lock, concurrent deliveries were scheduled before this, or find no endpoint.
            const [known] = yield* sql<{ readonly webhook_no: number }>`
              select webhook_no from webhooks where webhook_id = ${webhookId} ${store.forUpdate}`
            if (known === undefined) return false
            yield* Changes.log(store, webhookId, "removed", by)
            yield* sql`delete from webhook_deliveries where webhook_no = ${known.webhook_no}`
            yield* sql`delete from webhook_secrets where webhook_no = ${known.webhook_no}`
            yield* sql`delete from watch_events where watch_no in (${watches})`
            yield* sql`delete from watches where watch_no in (${watches})`
            yield* Effect.forEach(sources, ({ source_no }) => Registry.tidy(store, source_no))
            yield* sql`delete from webhooks where webhook_no = ${known.webhook_no}`
            return true
          })
        )
    }
  })

export const layer = (options: Store.Options): Migrations.StoredLayer<Webhooks> =>
  Layer.effect(Webhooks, make(options))
