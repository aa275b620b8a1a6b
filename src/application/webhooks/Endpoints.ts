import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { EventKind } from "../ports/journal/Events.js"
import type { AccountId } from "../ports/Tenants.js"
import { type Webhook, WebhookSender, Webhooks } from "../ports/Webhooks.js"

/** Changes of accounts' endpoints, under the same rules for the command line and the HTTP interface. */

/** The owner of the endpoints, and the author of a change. */
export interface Actor {
  /** Null: the operator, who sees all accounts' endpoints. */
  readonly accountId: AccountId | null
  /** Author in the log of changes: a request id, or `operator`. */
  readonly by: string
}

/** Reason for a refused change. `url`: the rules forbid the URL. */
export class EndpointError extends Data.TaggedError("EndpointError")<{
  readonly reason: "url" | "unknown"
  readonly message: string
}> {}

/** Longest time that an older secret may overlap its successor, hours. */
export const longestOverlapHours = 720
export const usualOverlapHours = 24

const unknown = (webhookId: string) =>
  new EndpointError({ reason: "unknown", message: `there is no webhook ${webhookId}` })

export const find = Effect.fnUntraced(function* ({ accountId }: Pick<Actor, "accountId">, webhookId: string) {
  const store = yield* Webhooks
  const found = (yield* store.list(accountId)).find((one) => one.webhookId === webhookId)
  return found ?? (yield* unknown(webhookId))
})

/** Adds an endpoint. No other call returns its secret. */
export const add = Effect.fnUntraced(function* (
  { accountId, by }: Actor & { readonly accountId: AccountId },
  url: string,
  kinds: ReadonlyArray<EventKind>
) {
  const store = yield* Webhooks
  const refusal = (yield* WebhookSender).refusal(accountId, url)
  if (refusal !== null) return yield* new EndpointError({ reason: "url", message: refusal })
  const { secret, webhookId } = yield* store.add(accountId, Redacted.make(url), kinds, by)
  return { secret, webhook: yield* find({ accountId }, webhookId) }
})

export interface Change {
  readonly state?: "enabled" | "paused" | undefined
  readonly kinds?: ReadonlyArray<EventKind> | undefined
}

export const change = Effect.fnUntraced(function* (
  actor: Actor,
  webhookId: string,
  { kinds, state }: Change
) {
  const store = yield* Webhooks
  yield* find(actor, webhookId)
  if (kinds !== undefined) yield* store.setKinds(webhookId, kinds, actor.by)
  if (state !== undefined) yield* store.setState(webhookId, state, actor.by)
  return yield* find(actor, webhookId)
})

/** Issues a new secret. The previous one also signs for `overlapHours`; older ones keep their end. 0: none. */
export const rotate = Effect.fnUntraced(function* (actor: Actor, webhookId: string, overlapHours: number) {
  const store = yield* Webhooks
  yield* find(actor, webhookId)
  const oldUntil = (yield* Clock.currentTimeMillis) + overlapHours * 3_600_000
  const secret = yield* store.rotate(webhookId, oldUntil, actor.by)
  return secret === null ? yield* unknown(webhookId) : { secret, oldUntil }
})

/** Removes its undelivered events too. */
export const remove = Effect.fnUntraced(function* (actor: Actor, webhookId: string) {
  const store = yield* Webhooks
  yield* find(actor, webhookId)
  if (!(yield* store.remove(webhookId, actor.by))) return yield* unknown(webhookId)
})

/** Abandoned events, oldest first. */
export const dead = Effect.fnUntraced(function* (actor: Actor, webhookId: string, limit: number) {
  const store = yield* Webhooks
  yield* find(actor, webhookId)
  return yield* store.dead(webhookId, limit)
})

/** The form of all request and watch ids; other strings do not reach the store. */
const shape = /^[!-~]{1,255}$/

/** Queues abandoned events again, of one request or of all, and returns their number. */
export const redeliver = Effect.fnUntraced(function* (
  actor: Actor,
  webhookId: string,
  requestId: string | null
) {
  const store = yield* Webhooks
  yield* find(actor, webhookId)
  if (requestId !== null && !shape.test(requestId)) return 0
  return yield* store.redeliver(webhookId, requestId, actor.by)
})

/** Only scheme and host: paths may hold keys. Null: it has no URL, or its URL is sealed under another key. */
export const originOf = ({ url }: Pick<Webhook, "url">): string | null =>
  url === null ? null : new URL(Redacted.value(url)).origin
