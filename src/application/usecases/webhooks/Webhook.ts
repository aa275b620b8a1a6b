import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { kinds } from "../../ports/journal/Events.js"
import { type Webhook, WebhooksError } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import { catalogue } from "../../request/Catalogue.js"
import { type Failure, invalid, NotFound } from "../../request/Failure.js"
import * as Endpoints from "../../webhooks/Endpoints.js"

/** What the endpoints of webhooks share. */

export const Path = Schema.Struct({
  webhookId: Schema.String.annotate({ description: "The webhookId that POST /webhooks has answered." })
}).annotate({ identifier: "WebhookPath" })
export type Path = typeof Path.Type

export const Kinds = Schema.Array(Schema.Literals([...kinds])).annotate({
  description: "Events that it is told of; empty: all."
})

const members = {
  webhookId: Schema.String,
  origin: Schema.NullOr(Schema.String).annotate({
    description:
      "Scheme and host of its URL; the rest is shown to nobody. Null: the operator has changed the key that it was sealed with."
  }),
  kinds: Kinds,
  state: Schema.Literals(["enabled", "paused", "failing"]).annotate({
    description: "failing: paused by the service, since nothing was taken for days or the answer was 410."
  }),
  waiting: Schema.Int.annotate({ description: "Events that are not delivered yet." }),
  dead: Schema.Int.annotate({ description: "Events that were given up." }),
  createdAt: Schema.Int.annotate({ description: "Unix seconds." })
}

export const Shown = Schema.Struct(members).annotate({ identifier: "Webhook" })
export type Shown = typeof Shown.Type

export const Secret = Schema.String.annotate({
  description: "whsec_ and base64, as Standard Webhooks has it. Shown this once."
})

export const WithSecret = Schema.Struct({ ...members, secret: Secret }).annotate({
  identifier: "AddedWebhook"
})

export const shown = (webhook: Webhook): Shown => {
  const { createdAt, dead, kinds, state, waiting, webhookId } = webhook
  return {
    webhookId,
    origin: Endpoints.originOf(webhook),
    kinds,
    state,
    waiting,
    dead,
    createdAt: Math.floor(createdAt / 1_000)
  }
}

export const actorOf = ({ principal: { accountId }, requestId }: Caller) => ({ accountId, by: requestId })

/** Another account's webhook is not found, like none at all. A store that fails is a defect. */
export const failing = <A, R>(
  effect: Effect.Effect<A, Endpoints.EndpointError | WebhooksError, R>
): Effect.Effect<A, Failure, R> =>
  Effect.catch(effect, (error): Effect.Effect<never, Failure> => {
    if (error instanceof WebhooksError) {
      const { message, reason } = error
      if (reason === "unavailable") return Effect.die(error)
      return Effect.fail(
        reason === "tooMany"
          ? invalid("too_many_webhooks", [{ path: "", message }])
          : invalid("invalid_request", [{ path: "overlapHours", message }])
      )
    }
    if (error.reason === "url")
      return Effect.fail(invalid("invalid_request", [{ path: "url", message: error.message }]))
    const code = "webhook_not_found"
    return Effect.fail(new NotFound({ code, message: catalogue[code].text, details: [] }))
  })
