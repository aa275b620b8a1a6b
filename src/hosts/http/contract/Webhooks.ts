import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Webhook from "../../../application/endpoints/subscriptions/Webhook.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { Authentication, BodyOptional, describe, RequiredScope } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const one = { webhookId: Sample.requestId }
const ofOne = { disableCodecs: true, params: Webhook.Path.fields, error: ErrorEnvelope.schemas[404] } as const

/** Destinations for the events of an account's requests. */
export const group = HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.post("addWebhook", "/webhooks", {
      disableCodecs: true,
      payload: Webhook.AddRequest,
      success: Webhook.WithSecret
    }).annotateMerge(
      describe(
        "Add a webhook",
        "Events of the account's requests are sent to the URL from now on, signed as Standard Webhooks says with the secret of the answer, which is shown this once. A repeat makes another webhook; an account has at most ten.",
        { url: "https://example.com/castellan", kinds: ["final", "reopened"] }
      )
    ),
    HttpApiEndpoint.get("listWebhooks", "/webhooks", {
      disableCodecs: true,
      success: Webhook.List
    }).annotateMerge(
      describe("List webhooks", "The account's webhooks with the number of their undelivered events.")
    ),
    HttpApiEndpoint.get("getWebhook", "/webhooks/:webhookId", {
      ...ofOne,
      success: Webhook.Shown
    }).annotateMerge(
      describe("Get a webhook", "One webhook of the account. Another account's is not found.", one)
    ),
    HttpApiEndpoint.patch("changeWebhook", "/webhooks/:webhookId", {
      ...ofOne,
      payload: Webhook.ChangeRequest,
      success: Webhook.Shown
    }).annotateMerge(
      describe(
        "Pause, resume or change a webhook",
        "Changes the fields of the body. Undelivered events of a paused webhook wait. A webhook that the service has paused (failing) is resumed the same way. New kinds apply to later events.",
        { ...one, state: "paused" }
      )
    ),
    HttpApiEndpoint.delete("removeWebhook", "/webhooks/:webhookId", {
      ...ofOne,
      success: Webhook.Removed
    }).annotateMerge(describe("Remove a webhook", "Removes it together with its undelivered events.", one)),
    HttpApiEndpoint.post("rotateSecret", "/webhooks/:webhookId/rotate", {
      ...ofOne,
      payload: Webhook.RotateRequest,
      success: Webhook.Rotated
    })
      .annotate(BodyOptional, true)
      .annotateMerge(
        describe(
          "Rotate the secret of a webhook",
          "A new secret, shown this once. Messages are signed with both until overlapHours are over; a secret before the older one ends now.",
          { ...one, overlapHours: 24 }
        )
      ),
    HttpApiEndpoint.get("listDead", "/webhooks/:webhookId/dead", {
      ...ofOne,
      success: Webhook.Dead
    }).annotateMerge(
      describe("List undeliverable events", "Events that the webhook has not accepted for three days.", one)
    ),
    HttpApiEndpoint.post("redeliver", "/webhooks/:webhookId/redeliver", {
      ...ofOne,
      payload: Webhook.RedeliverRequest,
      success: Webhook.Redelivered
    })
      .annotate(BodyOptional, true)
      .annotateMerge(
        describe(
          "Send undeliverable events again",
          "Queues undeliverable events again, of one request or of all.",
          { ...one, requestId: Sample.requestId }
        )
      )
  )
  .annotateEndpoints(RequiredScope, "webhooks")
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Endpoints that receive the events of requests.")

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
