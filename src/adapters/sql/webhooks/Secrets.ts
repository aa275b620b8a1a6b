import { randomBytes } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { SqlError } from "effect/sql/SqlError"
import { type Webhooks, WebhooksError } from "../../../application/ports/Webhooks.js"
import type * as Store from "../Store.js"
import * as Changes from "./Changes.js"

/** Secrets of endpoints: the newest two are in the endpoint's row, older ones in a separate table. */

type Asked = <A>(effect: Effect.Effect<A, WebhooksError | SqlError>) => Effect.Effect<A, WebhooksError>

/** Most active secrets: each message has a signature per secret, in one header. */
const mostAtOnce = 10

const nameOf = (webhookId: string): string => `webhook secret ${webhookId}`

interface Kept {
  readonly secret: string
  readonly counts_until: number | string
}

/** Active secrets of an endpoint except the newest, newer ones first. */
const older = ({ sql }: Store.Store, webhookId: string, now: number) => sql<Kept>`
  select old_secret as secret, old_until as counts_until, 0 as place from webhooks
  where webhook_id = ${webhookId} and old_secret is not null and old_until > ${now}
  union all
  select webhook_secrets.secret, webhook_secrets.counts_until, 1 from webhook_secrets
  join webhooks on webhooks.webhook_no = webhook_secrets.webhook_no
  where webhooks.webhook_id = ${webhookId} and webhook_secrets.counts_until > ${now}
  order by place, counts_until desc`

/** Creates a 256-bit secret in the form of Standard Webhooks, and its sealed form. */
export const fresh = ({ seal }: Store.Store, webhookId: string) => {
  const secret = `whsec_${randomBytes(32).toString("base64")}`
  return { secret: Redacted.make(secret), sealed: seal.close(nameOf(webhookId), secret) }
}

/** Opens the endpoint's active secrets, newest first. None: they were sealed under another key. */
export const open = (store: Store.Store, webhookId: string, newest: string, now: number) =>
  Effect.flatMap(older(store, webhookId, now), (kept) =>
    Effect.option(
      Effect.forEach([newest, ...kept.map(({ secret }) => secret)], (sealed) =>
        Effect.map(store.seal.open(nameOf(webhookId), sealed), Redacted.make<string>)
      )
    )
  )

export const rotate =
  (store: Store.Store, asked: Asked): Webhooks["Service"]["rotate"] =>
  (webhookId, until, by) =>
    asked(
      Effect.gen(function* () {
        const { sql } = store
        const [known] = yield* sql<{ readonly webhook_no: number }>`
          select webhook_no from webhooks where webhook_id = ${webhookId} ${store.forUpdate}`
        if (known === undefined) return null
        const { webhook_no } = known
        const now = yield* Clock.currentTimeMillis
        const kept = until > now ? yield* older(store, webhookId, now) : []
        if (kept.length > mostAtOnce - 2)
          return yield* new WebhooksError({
            reason: "tooManySecrets",
            message: `${kept.length + 1} secrets are active already: with 0 hours all older secrets end immediately, the current one included`
          })
        const { sealed, secret } = fresh(store, webhookId)
        yield* sql`delete from webhook_secrets where webhook_no = ${webhook_no}`
        yield* Effect.forEach(
          kept,
          ({ counts_until, secret }) => sql`
            insert into webhook_secrets ${sql.insert({ webhook_no, secret, counts_until })}`
        )
        yield* sql`
          update webhooks set old_secret = secret, old_until = ${until}, secret = ${sealed}
          where webhook_no = ${webhook_no}`
        yield* Changes.log(store, webhookId, "rotated", by)
        return secret
      })
    )
