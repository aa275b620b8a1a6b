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
  requestId: Fields.optional(
    Schema.String.annotate({ description: "Of this request, or watch, alone. Default: of all." })
  )
}).annotate({ identifier: "RedeliverRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({
  owed: Schema.Int.annotate({ description: "Events that are sent once more." })
}).annotate({ identifier: "Redelivered" })
export type Response = typeof Response.Type

/** Owes a webhook once more what was given up. */
export const run = (
  caller: Caller,
  { requestId, webhookId }: Request & Webhook.Path
): Effect.Effect<Response, Failure, Webhooks> =>
  Endpoints.redeliver(Webhook.actorOf(caller), webhookId, requestId ?? null).pipe(
    Effect.map((owed) => ({ owed })),
    Webhook.failing,
    Span.named("Redeliver")
  )
