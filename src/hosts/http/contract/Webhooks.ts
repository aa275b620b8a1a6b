import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Webhook from "../../../application/usecases/webhooks/Webhook.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { Authentication, BodyOptional, RequiredScope, said } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const one = { webhookId: Sample.requestId }
const ofOne = { disableCodecs: true, params: Webhook.Path.fields, error: ErrorEnvelope.schemas[404] } as const

/** Where an account is told of its requests' events. */
export const group = HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.post("addWebhook", "/webhooks", {
      disableCodecs: true,
      payload: Webhook.AddRequest,
      success: Webhook.WithSecret
    }).annotateMerge(
      said(
        "Add a webhook",
        "Events of the account's requests are sent to the URL from now on, signed as Standard Webhooks says with the secret of the answer, which is shown this once. A repeat makes another webhook; an account has at most ten.",
        { url: "https://example.com/castellan", kinds: ["final", "reopened"] }
      )
    ),
    HttpApiEndpoint.get("listWebhooks", "/webhooks", {
      disableCodecs: true,
      success: Webhook.List
    }).annotateMerge(said("List webhooks", "The account's webhooks, with how much is owed to each.")),
    HttpApiEndpoint.get("getWebhook", "/webhooks/:webhookId", {
      ...ofOne,
      success: Webhook.Shown
    }).annotateMerge(
      said("Ask for one webhook", "One webhook of the account. Another account's is not found.", one)
    ),
    HttpApiEndpoint.patch("changeWebhook", "/webhooks/:webhookId", {
      ...ofOne,
      payload: Webhook.ChangeRequest,
      success: Webhook.Shown
    }).annotateMerge(
      said(
        "Pause, resume or change a webhook",
        "Changes what the body names. What is owed to a paused webhook waits; resume also one that the service has paused (failing). Other kinds hold for events from now on.",
        { ...one, state: "paused" }
      )
    ),
    HttpApiEndpoint.delete("removeWebhook", "/webhooks/:webhookId", {
      ...ofOne,
      success: Webhook.Removed
    }).annotateMerge(said("Remove a webhook", "Removes it with all that is owed to it.", one)),
    HttpApiEndpoint.post("rotateSecret", "/webhooks/:webhookId/rotate", {
      ...ofOne,
      payload: Webhook.RotateRequest,
      success: Webhook.Rotated
    })
      .annotate(BodyOptional, true)
      .annotateMerge(
        said(
          "Rotate the secret of a webhook",
          "A new secret, shown this once. Messages are signed with both until overlapHours are over; a secret before the older one ends now.",
          { ...one, overlapHours: 24 }
        )
      ),
    HttpApiEndpoint.get("listDead", "/webhooks/:webhookId/dead", {
      ...ofOne,
      success: Webhook.Dead
    }).annotateMerge(
      said("List events that were given up", "Events that the webhook has not taken for three days.", one)
    ),
    HttpApiEndpoint.post("redeliver", "/webhooks/:webhookId/redeliver", {
      ...ofOne,
      payload: Webhook.RedeliverRequest,
      success: Webhook.Redelivered
    })
      .annotate(BodyOptional, true)
      .annotateMerge(
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

/** By the endpoint's name. */
export const useCases = {
  addWebhook: Webhook.add,
  listWebhooks: Webhook.list,
  getWebhook: Webhook.get,
  changeWebhook: Webhook.change,
  removeWebhook: Webhook.remove,
  rotateSecret: Webhook.rotate,
  listDead: Webhook.dead,
  redeliver: Webhook.redeliver
}
