import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import type { Webhooks } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Fields from "../../request/Fields.js"
import * as Endpoints from "../../webhooks/Endpoints.js"
import * as Webhook from "./Webhook.js"

const hours = `a whole number of hours, 0 to ${Endpoints.longestOverlapHours}`

export const Request = Schema.Struct({
  overlapHours: Fields.optional(
    Schema.Int.pipe(
      Schema.check(Schema.isBetween({ minimum: 0, maximum: Endpoints.longestOverlapHours }))
    ).annotate({
      description: `For how long messages are signed with the secret before it too: ${hours}. Earlier ones end when was said of them; with 0 none of them counts any more.`,
      message: `expected ${hours}`
    }),
    Endpoints.usualOverlapHours
  )
}).annotate({ identifier: "RotateSecretRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({
  webhookId: Schema.String,
  secret: Webhook.Secret,
  oldUntil: Schema.Int.annotate({ description: "Until when the secret before it counts, Unix seconds." })
}).annotate({ identifier: "RotatedSecret" })
export type Response = typeof Response.Type

/** Gives a webhook a new secret, and tells it. */
export const run = (
  caller: Caller,
  { overlapHours = Endpoints.usualOverlapHours, webhookId }: Request & Webhook.Path
): Effect.Effect<Response, Failure, Webhooks> =>
  Endpoints.rotate(Webhook.actorOf(caller), webhookId, overlapHours).pipe(
    Effect.map(({ oldUntil, secret }) => ({
      webhookId,
      secret: Redacted.value(secret),
      oldUntil: Math.floor(oldUntil / 1_000)
    })),
    Webhook.failing,
    Span.named("RotateSecret")
  )
