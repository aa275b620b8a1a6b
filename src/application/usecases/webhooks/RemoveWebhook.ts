import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import type { Webhooks } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Endpoints from "../../webhooks/Endpoints.js"
import * as Webhook from "./Webhook.js"

export const Response = Schema.Struct({
  webhookId: Schema.String,
  state: Schema.Literal("removed")
}).annotate({ identifier: "RemovedWebhook" })
export type Response = typeof Response.Type

/** Removes a webhook with all that is owed to it. */
export const run = (
  caller: Caller,
  { webhookId }: Webhook.Path
): Effect.Effect<Response, Failure, Webhooks> =>
  Endpoints.remove(Webhook.actorOf(caller), webhookId).pipe(
    Effect.as({ webhookId, state: "removed" as const }),
    Webhook.failing,
    Span.named("RemoveWebhook")
  )
