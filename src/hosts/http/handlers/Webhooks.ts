import * as AddWebhook from "../../../application/usecases/webhooks/AddWebhook.js"
import * as ChangeWebhook from "../../../application/usecases/webhooks/ChangeWebhook.js"
import * as GetWebhook from "../../../application/usecases/webhooks/GetWebhook.js"
import * as ListDead from "../../../application/usecases/webhooks/ListDead.js"
import * as ListWebhooks from "../../../application/usecases/webhooks/ListWebhooks.js"
import * as Redeliver from "../../../application/usecases/webhooks/Redeliver.js"
import * as RemoveWebhook from "../../../application/usecases/webhooks/RemoveWebhook.js"
import * as RotateSecret from "../../../application/usecases/webhooks/RotateSecret.js"
import type { group } from "../contract/Webhooks.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  addWebhook: (caller, request) => AddWebhook.run(caller, request),
  listWebhooks: (caller) => ListWebhooks.run(caller),
  getWebhook: (caller, request) => GetWebhook.run(caller, request),
  changeWebhook: (caller, request) => ChangeWebhook.run(caller, request),
  removeWebhook: (caller, request) => RemoveWebhook.run(caller, request),
  rotateSecret: (caller, request) => RotateSecret.run(caller, request),
  listDead: (caller, request) => ListDead.run(caller, request),
  redeliver: (caller, request) => Redeliver.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
