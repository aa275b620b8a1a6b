import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { type Failure, invalidAt, notFound } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import { kinds } from "../../ports/journal/Events.js"
import { type Webhook, Webhooks, WebhooksError } from "../../ports/Webhooks.js"
import type { Caller } from "../../request/Caller.js"
import * as Fields from "../../request/Fields.js"
import * as Endpoints from "../../webhooks/Endpoints.js"

/** The endpoints of webhooks. */

export const Path = Schema.Struct({
  webhookId: Schema.String.annotate({ description: "The webhookId that POST /webhooks has answered." })
}).annotate({ identifier: "WebhookPath" })
type Path = typeof Path.Type

const Kinds = Schema.Array(Schema.Literals([...kinds])).annotate({
  description: "Kinds of events that it receives; empty: all."
})

const members = {
  webhookId: Schema.String,
  origin: Schema.NullOr(Schema.String).annotate({
    description:
      "Scheme and host of its URL; the full URL is never shown. Null: the operator has changed the key that sealed the URL."
  }),
  kinds: Kinds,
  state: Schema.Literals(["enabled", "paused", "failing"]).annotate({
    description:
      "failing: paused by the service, because no delivery succeeded for days or the answer was 410."
  }),
  waiting: Schema.Int.annotate({ description: "Events that are not delivered yet." }),
  dead: Schema.Int.annotate({ description: "Events whose delivery ended without success." }),
  createdAt: Schema.Int.annotate({ description: "Unix seconds." })
}

export const Shown = Schema.Struct(members).annotate({ identifier: "Webhook" })

const Secret = Schema.String.annotate({
  description: "whsec_ and base64, as Standard Webhooks defines it. Shown only in this answer."
})

export const WithSecret = Schema.Struct({ ...members, secret: Secret }).annotate({
  identifier: "AddedWebhook"
})

const shown = (webhook: Webhook): typeof Shown.Type => {
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

const actorOf = ({ principal: { accountId }, requestId }: Caller) => ({ accountId, by: requestId })

/** Another account's webhook is not found, like an unknown one. A store that fails is a defect. */
const failing = <A, R>(effect: Effect.Effect<A, Endpoints.EndpointError | WebhooksError, R>) =>
  Effect.catch(effect, (error): Effect.Effect<never, Failure> => {
    if (error instanceof WebhooksError) {
      const { message, reason } = error
      if (reason === "unavailable") return Effect.die(error)
      return Effect.fail(
        reason === "tooMany"
          ? invalidAt("", message, "too_many_webhooks")
          : invalidAt("overlapHours", message)
      )
    }
    if (error.reason === "url") return invalidAt("url", error.message)
    return notFound("webhook_not_found")
  })

export const AddRequest = Schema.Struct({
  url: Schema.String.check(
    Schema.isMaxLength(2_048, { message: "expected a URL of at most 2048 characters" })
  ).annotate({
    description: "http or https, under the operator's rules for URLs of callers."
  }),
  kinds: Fields.optional(Kinds, [])
}).annotate({ identifier: "AddWebhookRequest" })

/** Adds a webhook to the account, and returns its secret. */
export const add = (caller: Caller, { kinds = [], url }: typeof AddRequest.Type) =>
  Endpoints.add(actorOf(caller), url, kinds).pipe(
    Effect.map(({ secret, webhook }) => ({ ...shown(webhook), secret: Redacted.value(secret) })),
    failing,
    Span.named("AddWebhook")
  )

export const List = Schema.Struct({ webhooks: Schema.Array(Shown) }).annotate({ identifier: "WebhookList" })

/** The account's webhooks, in creation order. */
export const list = ({ principal }: Caller) =>
  Effect.flatMap(Webhooks, (store) => store.list(principal.accountId)).pipe(
    Effect.map((found) => ({ webhooks: found.map(shown) })),
    Effect.orDie,
    Span.named("ListWebhooks")
  )

export const get = (caller: Caller, { webhookId }: Path) =>
  Endpoints.find(actorOf(caller), webhookId).pipe(Effect.map(shown), failing, Span.named("GetWebhook"))

export const ChangeRequest = Schema.Struct({
  state: Fields.optional(
    Schema.Literals(["enabled", "paused"]).annotate({
      description: "paused: no event is sent, and undelivered events wait. enabled: delivery continues."
    })
  ),
  kinds: Fields.optional(Kinds)
})
  .check(Schema.isMinProperties(1, { message: "expected state, kinds or both" }))
  .annotate({ identifier: "ChangeWebhookRequest" })

/** Changes the given fields. New kinds do not affect events that are already due. */
export const change = (caller: Caller, { webhookId, ...changed }: typeof ChangeRequest.Type & Path) =>
  Endpoints.change(actorOf(caller), webhookId, changed).pipe(
    Effect.map(shown),
    failing,
    Span.named("ChangeWebhook")
  )

export const Removed = Schema.Struct({
  webhookId: Schema.String,
  state: Schema.Literal("removed")
}).annotate({ identifier: "RemovedWebhook" })

/** Removes a webhook and its undelivered events. */
export const remove = (caller: Caller, { webhookId }: Path) =>
  Endpoints.remove(actorOf(caller), webhookId).pipe(
    Effect.as({ webhookId, state: "removed" as const }),
    failing,
    Span.named("RemoveWebhook")
  )

const hours = `a whole number of hours, 0 to ${Endpoints.longestOverlapHours}`

export const RotateRequest = Schema.Struct({
  overlapHours: Fields.optional(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Endpoints.longestOverlapHours })).annotate({
      description: `How long messages also carry a signature of the previous secret: ${hours}. Earlier secrets keep their own ends; 0 ends all of them now.`,
      message: `expected ${hours}`
    }),
    Endpoints.usualOverlapHours
  )
}).annotate({ identifier: "RotateSecretRequest" })

export const Rotated = Schema.Struct({
  webhookId: Schema.String,
  secret: Secret,
  oldUntil: Schema.Int.annotate({ description: "End of the previous secret, Unix seconds." })
}).annotate({ identifier: "RotatedSecret" })

/** Gives a webhook a new secret, and returns it. */
export const rotate = (
  caller: Caller,
  { overlapHours = Endpoints.usualOverlapHours, webhookId }: typeof RotateRequest.Type & Path
) =>
  Endpoints.rotate(actorOf(caller), webhookId, overlapHours).pipe(
    Effect.map(({ oldUntil, secret }) => ({
      webhookId,
      secret: Redacted.value(secret),
      oldUntil: Math.floor(oldUntil / 1_000)
    })),
    failing,
    Span.named("RotateSecret")
  )

/** Most abandoned events shown, oldest first. */
const mostDead = 1_000

export const Dead = Schema.Struct({
  events: Schema.Array(
    Schema.Struct({
      requestId: Fields.optional(Schema.String.annotate({ description: "Of a request's event." })),
      watchId: Fields.optional(Schema.String.annotate({ description: "Of a watch's event." })),
      sequence: Schema.Int,
      kind: Schema.Literals([...kinds, "event", "removed"]).annotate({
        description: "event and removed are those of watches."
      }),
      at: Schema.Int.annotate({ description: "Time of the event, Unix seconds." }),
      attempts: Schema.Int,
      lastError: Schema.NullOr(Schema.String).annotate({
        description: "Result of the last attempt."
      })
    }).annotate({ identifier: "DeadEvent" })
  ).annotate({ description: `The oldest ${mostDead.toLocaleString("en")}, oldest first.` })
}).annotate({ identifier: "DeadEventList" })

/** Events abandoned after three days without success. */
export const dead = (caller: Caller, { webhookId }: Path) =>
  Endpoints.dead(actorOf(caller), webhookId, mostDead).pipe(
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
    failing,
    Span.named("ListDead")
  )

export const RedeliverRequest = Schema.Struct({
  requestId: Fields.optional(
    Schema.String.annotate({ description: "Only events of this request or watch. Default: all events." })
  )
}).annotate({ identifier: "RedeliverRequest" })

export const Redelivered = Schema.Struct({
  owed: Schema.Int.annotate({ description: "Events queued again." })
}).annotate({ identifier: "Redelivered" })

/** Sends a webhook's abandoned events once more. */
export const redeliver = (caller: Caller, { requestId, webhookId }: typeof RedeliverRequest.Type & Path) =>
  Endpoints.redeliver(actorOf(caller), webhookId, requestId ?? null).pipe(
    Effect.map((owed) => ({ owed })),
    failing,
    Span.named("Redeliver")
  )
