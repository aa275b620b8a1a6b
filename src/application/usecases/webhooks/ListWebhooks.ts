import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import { Webhooks } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import * as Webhook from "./Webhook.js"

export const Response = Schema.Struct({ webhooks: Schema.Array(Webhook.Shown) }).annotate({
  identifier: "WebhookList"
})
export type Response = typeof Response.Type

/** The account's webhooks, in the order of their making. */
export const run = ({ principal }: Caller): Effect.Effect<Response, never, Webhooks> =>
  Effect.flatMap(Webhooks, (store) => store.list(principal.accountId)).pipe(
    Effect.map((found) => ({ webhooks: found.map(Webhook.shown) })),
    Effect.orDie,
    Span.named("ListWebhooks")
  )
