import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as DecisionHook from "../../../application/endpoints/policies/DecisionHook.js"
import { Authentication, BodyBounds, described, RequiredScope } from "./EndpointAnnotations.js"

/** The receiver that decides about an account's requests. */
export const group = HttpApiGroup.make("decisionHook")
  .add(
    HttpApiEndpoint.put("setDecisionHook", "/decisionHook", {
      disableCodecs: true,
      payload: DecisionHook.Request,
      success: DecisionHook.WithSecret
    })
      .annotate(BodyBounds, { maxBytes: 65_536 })
      .annotateMerge(
        described(
          "Set the decision hook",
          "Within a second the service sends each request to the URL for a decision before it accepts the request. The answer holds a new secret, which is shown this once; the secret before it is invalid.",
          { url: "https://example.com/decide", timeoutMillis: 2_000, on: "payments" }
        )
      ),
    HttpApiEndpoint.get("getDecisionHook", "/decisionHook", {
      disableCodecs: true,
      success: DecisionHook.Shown
    }).annotateMerge(
      described("Ask for the decision hook", "The account's hook without its secret; null: none is set.")
    ),
    HttpApiEndpoint.delete("removeDecisionHook", "/decisionHook", {
      disableCodecs: true,
      success: DecisionHook.Shown
    }).annotateMerge(
      described(
        "Remove the decision hook",
        "Within a second the service sends no more requests to its URL. The operator's hook stays."
      )
    )
  )
  .annotateEndpoints(RequiredScope, "policies")
  .middleware(Authentication)
  .annotate(OpenApi.Description, "The receiver that decides about requests before their acceptance.")

export const useCases = {
  setDecisionHook: DecisionHook.set,
  getDecisionHook: DecisionHook.get,
  removeDecisionHook: DecisionHook.remove
}
