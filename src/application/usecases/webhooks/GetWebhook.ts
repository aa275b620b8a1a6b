import * as Effect from "effect/Effect"
import * as Span from "../../observe/Span.js"
import type { Webhooks } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Endpoints from "../../webhooks/Endpoints.js"
import * as Webhook from "./Webhook.js"

export const Response = Webhook.Shown
export type Response = typeof Response.Type

/** One webhook of the account. */
export const run = (
  caller: Caller,
  { webhookId }: Webhook.Path
): Effect.Effect<Response, Failure, Webhooks> =>
  Endpoints.find(Webhook.actorOf(caller), webhookId).pipe(
    Effect.map(Webhook.shown),
    Webhook.failing,
    Span.named("GetWebhook")
  )
