import type * as Webhook from "../application/endpoints/subscriptions/Webhook.js"
import type { CallOptions } from "./Transport.js"
import * as Transport from "./Transport.js"

/** The endpoints of webhooks. Only the answers of `add` and `rotate` contain secrets. */
export interface Webhooks {
  /** Not retried when its answer is lost: each call makes a webhook. */
  readonly add: (
    request: typeof Webhook.AddRequest.Encoded,
    options?: CallOptions
  ) => Promise<typeof Webhook.WithSecret.Encoded>
  readonly list: (options?: CallOptions) => Promise<typeof Webhook.List.Encoded>
  readonly get: (webhookId: string, options?: CallOptions) => Promise<typeof Webhook.Shown.Encoded>
  readonly change: (
    webhookId: string,
    request: typeof Webhook.ChangeRequest.Encoded,
    options?: CallOptions
  ) => Promise<typeof Webhook.Shown.Encoded>
  readonly remove: (webhookId: string, options?: CallOptions) => Promise<typeof Webhook.Removed.Encoded>
  /** Not retried when its answer is lost: each call makes a new secret. */
  readonly rotate: (
    webhookId: string,
    request?: typeof Webhook.RotateRequest.Encoded,
    options?: CallOptions
  ) => Promise<typeof Webhook.Rotated.Encoded>
  readonly dead: (webhookId: string, options?: CallOptions) => Promise<typeof Webhook.Dead.Encoded>
  readonly redeliver: (
    webhookId: string,
    request?: typeof Webhook.RedeliverRequest.Encoded,
    options?: CallOptions
  ) => Promise<typeof Webhook.Redelivered.Encoded>
}

export const make = (send: (exchange: Transport.Exchange) => Promise<Transport.Answer>): Webhooks => {
  const ask = Transport.under(send, "/webhooks")
  const at = (webhookId: string) => `/${encodeURIComponent(webhookId)}`
  return {
    add: (request, more) => ask("POST", "", request, false, more),
    list: (more) => ask("GET", "", undefined, true, more),
    get: (webhookId, more) => ask("GET", at(webhookId), undefined, true, more),
    change: (webhookId, request, more) => ask("PATCH", at(webhookId), request, true, more),
    remove: (webhookId, more) => ask("DELETE", at(webhookId), undefined, false, more),
    rotate: (webhookId, request = {}, more) => ask("POST", `${at(webhookId)}/rotate`, request, false, more),
    dead: (webhookId, more) => ask("GET", `${at(webhookId)}/dead`, undefined, true, more),
    redeliver: (webhookId, request = {}, more) =>
      ask("POST", `${at(webhookId)}/redeliver`, request, true, more)
  }
}
