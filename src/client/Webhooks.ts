import type * as AddWebhook from "../application/usecases/webhooks/AddWebhook.js"
import type * as ChangeWebhook from "../application/usecases/webhooks/ChangeWebhook.js"
import type * as ListDead from "../application/usecases/webhooks/ListDead.js"
import type * as ListWebhooks from "../application/usecases/webhooks/ListWebhooks.js"
import type * as Redeliver from "../application/usecases/webhooks/Redeliver.js"
import type * as RemoveWebhook from "../application/usecases/webhooks/RemoveWebhook.js"
import type * as RotateSecret from "../application/usecases/webhooks/RotateSecret.js"
import type * as Webhook from "../application/usecases/webhooks/Webhook.js"
import type { CallOptions } from "./CallOptions.js"
import * as Transport from "./Transport.js"

/** The endpoints of webhooks. Secrets are in the answers of `add` and `rotate`, and in no other. */
export interface Webhooks {
  /** Not sent again when its answer is lost: each makes a webhook. */
  readonly add: (
    request: typeof AddWebhook.Request.Encoded,
    options?: CallOptions
  ) => Promise<typeof AddWebhook.Response.Encoded>
  readonly list: (options?: CallOptions) => Promise<typeof ListWebhooks.Response.Encoded>
  readonly get: (webhookId: string, options?: CallOptions) => Promise<typeof Webhook.Shown.Encoded>
  readonly change: (
    webhookId: string,
    request: typeof ChangeWebhook.Request.Encoded,
    options?: CallOptions
  ) => Promise<typeof Webhook.Shown.Encoded>
  readonly remove: (
    webhookId: string,
    options?: CallOptions
  ) => Promise<typeof RemoveWebhook.Response.Encoded>
  /** Not sent again when its answer is lost: the secret in it would be the older one by then. */
  readonly rotate: (
    webhookId: string,
    request?: typeof RotateSecret.Request.Encoded,
    options?: CallOptions
  ) => Promise<typeof RotateSecret.Response.Encoded>
  readonly dead: (webhookId: string, options?: CallOptions) => Promise<typeof ListDead.Response.Encoded>
  readonly redeliver: (
    webhookId: string,
    request?: typeof Redeliver.Request.Encoded,
    options?: CallOptions
  ) => Promise<typeof Redeliver.Response.Encoded>
}

export const make = (send: (exchange: Transport.Exchange) => Promise<Transport.Answer>): Webhooks => {
  const ask = Transport.under(send, "/webhooks")
  const at = (webhookId: string) => `/${encodeURIComponent(webhookId)}`
  const endpoints = {
    add: (request: unknown, more?: CallOptions) => ask("POST", "", request, false, more),
    list: (more?: CallOptions) => ask("GET", "", undefined, true, more),
    get: (webhookId: string, more?: CallOptions) => ask("GET", at(webhookId), undefined, true, more),
    change: (webhookId: string, request: unknown, more?: CallOptions) =>
      ask("PATCH", at(webhookId), request, true, more),
    remove: (webhookId: string, more?: CallOptions) => ask("DELETE", at(webhookId), undefined, false, more),
    rotate: (webhookId: string, request: unknown = {}, more?: CallOptions) =>
      ask("POST", `${at(webhookId)}/rotate`, request, false, more),
    dead: (webhookId: string, more?: CallOptions) =>
      ask("GET", `${at(webhookId)}/dead`, undefined, true, more),
    redeliver: (webhookId: string, request: unknown = {}, more?: CallOptions) =>
      ask("POST", `${at(webhookId)}/redeliver`, request, true, more)
  }
  return endpoints as Webhooks
}
