import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import { kinds } from "../../ports/journal/Events.js"
import type { Webhooks } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Fields from "../../request/Fields.js"
import * as Endpoints from "../../webhooks/Endpoints.js"
import * as Webhook from "./Webhook.js"

/** The oldest so many are shown. */
const most = 1_000

export const Response = Schema.Struct({
  events: Schema.Array(
    Schema.Struct({
      requestId: Fields.optional(Schema.String.annotate({ description: "Of a request's event." })),
      watchId: Fields.optional(Schema.String.annotate({ description: "Of a watch's event." })),
      sequence: Schema.Int,
      kind: Schema.Literals([...kinds, "event", "removed"]).annotate({
        description: "event and removed are those of watches."
      }),
      at: Schema.Int.annotate({ description: "When it came to be, Unix seconds." }),
      attempts: Schema.Int,
      lastError: Schema.NullOr(Schema.String).annotate({
        description: "What the last attempt has come to."
      })
    }).annotate({ identifier: "DeadEvent" })
  ).annotate({ description: `The oldest ${most.toLocaleString("en")}, oldest first.` })
}).annotate({ identifier: "DeadEventList" })
export type Response = typeof Response.Type

/** Events that were given up after three days. */
export const run = (
  caller: Caller,
  { webhookId }: Webhook.Path
): Effect.Effect<Response, Failure, Webhooks> =>
  Endpoints.dead(Webhook.actorOf(caller), webhookId, most).pipe(
    Effect.map((found) => ({
      events: found.map(({ attempts, event: { at, kind, sequence }, lastError, ...of }) => ({
        ...("watchId" in of ? { watchId: of.watchId } : { requestId: of.requestId }),
        sequence,
        kind,
        at: Math.floor(at / 1_000),
        attempts,
        lastError
      }))
    })),
    Webhook.failing,
    Span.named("ListDead")
  )
