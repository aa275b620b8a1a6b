import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import type { WebhookSender, Webhooks } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Fields from "../../request/Fields.js"
import * as Endpoints from "../../webhooks/Endpoints.js"
import * as Webhook from "./Webhook.js"

export const Request = Schema.Struct({
  url: Schema.String.pipe(
    Schema.check(Schema.isMaxLength(2_048, { message: "expected a URL of at most 2048 characters" }))
  ).annotate({
    description: "http or https; where nodes may be, under the rules of the operator for URLs of callers."
  }),
  kinds: Fields.optional(Webhook.Kinds, [])
}).annotate({ identifier: "AddWebhookRequest" })
export type Request = typeof Request.Type

export const Response = Webhook.WithSecret
export type Response = typeof Response.Type

/** Makes a webhook of the account, and tells its secret. */
export const run = (
  caller: Caller,
  { kinds = [], url }: Request
): Effect.Effect<Response, Failure, Webhooks | WebhookSender> =>
  Endpoints.add(Webhook.actorOf(caller), url, kinds).pipe(
    Effect.map(({ secret, webhook }) => ({ ...Webhook.shown(webhook), secret: Redacted.value(secret) })),
    Webhook.failing,
    Span.named("AddWebhook")
  )
