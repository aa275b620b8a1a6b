import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as AddWebhook from "../../../application/usecases/webhooks/AddWebhook.js"
import * as ChangeWebhook from "../../../application/usecases/webhooks/ChangeWebhook.js"
import * as GetWebhook from "../../../application/usecases/webhooks/GetWebhook.js"
import * as ListDead from "../../../application/usecases/webhooks/ListDead.js"
import * as ListWebhooks from "../../../application/usecases/webhooks/ListWebhooks.js"
import * as Redeliver from "../../../application/usecases/webhooks/Redeliver.js"
import * as RemoveWebhook from "../../../application/usecases/webhooks/RemoveWebhook.js"
import * as RotateSecret from "../../../application/usecases/webhooks/RotateSecret.js"
import * as Webhook from "../../../application/usecases/webhooks/Webhook.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { Authentication, BodyOptional, RequiredScope, said } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const notFound = ErrorEnvelope.schemas[404]
const one = { webhookId: Sample.requestId }

/** Where an account is told of its requests' events. */
export const group = HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.post("addWebhook", "/webhooks")
      .setPayload(AddWebhook.Request)
      .addSuccess(AddWebhook.Response)
      .annotateContext(
        said(
          "Add a webhook",
          "Events of the account's requests are sent to the URL from now on, signed as Standard Webhooks says with the secret of the answer, which is shown this once. A repeat makes another webhook; an account has at most ten.",
          { url: "https://example.com/castellan", kinds: ["final", "reopened"] }
        )
      )
  )
  .add(
    HttpApiEndpoint.get("listWebhooks", "/webhooks")
      .addSuccess(ListWebhooks.Response)
      .annotateContext(said("List webhooks", "The account's webhooks, with how much is owed to each."))
  )
  .add(
    HttpApiEndpoint.get("getWebhook", "/webhooks/:webhookId")
      .setPath(Webhook.Path)
      .addSuccess(GetWebhook.Response)
      .addError(notFound, { status: 404 })
      .annotateContext(
        said("Ask for one webhook", "One webhook of the account. Another account's is not found.", one)
      )
  )
  .add(
    HttpApiEndpoint.patch("changeWebhook", "/webhooks/:webhookId")
      .setPath(Webhook.Path)
      .setPayload(ChangeWebhook.Request)
      .addSuccess(ChangeWebhook.Response)
      .addError(notFound, { status: 404 })
      .annotateContext(
        said(
          "Pause, resume or change a webhook",
          "Changes what the body names. What is owed to a paused webhook waits; resume also one that the service has paused (failing). Other kinds hold for events from now on.",
          { ...one, state: "paused" }
        )
      )
  )
  .add(
    HttpApiEndpoint.del("removeWebhook", "/webhooks/:webhookId")
      .setPath(Webhook.Path)
      .addSuccess(RemoveWebhook.Response)
      .addError(notFound, { status: 404 })
      .annotateContext(said("Remove a webhook", "Removes it with all that is owed to it.", one))
  )
  .add(
    HttpApiEndpoint.post("rotateSecret", "/webhooks/:webhookId/rotate")
      .setPath(Webhook.Path)
      .setPayload(RotateSecret.Request)
      .addSuccess(RotateSecret.Response)
      .addError(notFound, { status: 404 })
      .annotate(BodyOptional, true)
      .annotateContext(
        said(
          "Rotate the secret of a webhook",
          "A new secret, shown this once. Messages are signed with both until overlapHours are over; a secret before the older one ends now.",
          { ...one, overlapHours: 24 }
        )
      )
  )
  .add(
    HttpApiEndpoint.get("listDead", "/webhooks/:webhookId/dead")
      .setPath(Webhook.Path)
      .addSuccess(ListDead.Response)
      .addError(notFound, { status: 404 })
      .annotateContext(
        said("List events that were given up", "Events that the webhook has not taken for three days.", one)
      )
  )
  .add(
    HttpApiEndpoint.post("redeliver", "/webhooks/:webhookId/redeliver")
      .setPath(Webhook.Path)
      .setPayload(Redeliver.Request)
      .addSuccess(Redeliver.Response)
      .addError(notFound, { status: 404 })
      .annotate(BodyOptional, true)
      .annotateContext(
        said(
          "Send again what was given up",
          "Owes the webhook once more what was given up, of one request or of all.",
          { ...one, requestId: Sample.requestId }
        )
      )
  )
  .annotateEndpoints(RequiredScope, "webhooks")
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Where the events of requests are sent to.")
