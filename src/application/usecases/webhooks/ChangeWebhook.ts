import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import type { Webhooks } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Fields from "../../request/Fields.js"
import * as Endpoints from "../../webhooks/Endpoints.js"
import * as Webhook from "./Webhook.js"

export const Request = Schema.Struct({
  state: Fields.optional(
    Schema.Literals(["enabled", "paused"]).annotate({
      description: "paused: nothing is sent, and what is owed waits. enabled: goes on where it was paused."
    })
  ),
  kinds: Fields.optional(Webhook.Kinds)
})
  .pipe(Schema.check(Schema.isMinProperties(1, { message: "expected state, kinds or both" })))
  .annotate({ identifier: "ChangeWebhookRequest" })
export type Request = typeof Request.Type

export const Response = Webhook.Shown
export type Response = typeof Response.Type

/** Changes what the request names of it. What is owed already stays owed, whatever the kinds are then. */
export const run = (
  caller: Caller,
  { kinds, state, webhookId }: Request & Webhook.Path
): Effect.Effect<Response, Failure, Webhooks> =>
  Endpoints.change(Webhook.actorOf(caller), webhookId, { kinds, state }).pipe(
    Effect.map(Webhook.shown),
    Webhook.failing,
    Span.named("ChangeWebhook")
  )
