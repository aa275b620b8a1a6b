import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as DecisionHook from "../../../application/endpoints/policies/DecisionHook.js"
import * as TopUps from "../../../application/endpoints/policies/TopUps.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { Authentication, BodyBounds, describe, RequiredScope } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

/** Settings that an account makes for itself. */

/** The receiver that decides about an account's requests. */
export const decisionHook = HttpApiGroup.make("decisionHook")
  .add(
    HttpApiEndpoint.put("setDecisionHook", "/decisionHook", {
      disableCodecs: true,
      payload: DecisionHook.Request,
      success: DecisionHook.WithSecret
    })
      .annotate(BodyBounds, { maxBytes: 65_536 })
      .annotateMerge(
        describe(
          "Set the decision hook",
          "Within a second the service sends each request to the URL for a decision before it accepts the request. The answer holds a new secret, which is shown this once; the secret before it is invalid.",
          { url: "https://example.com/decide", timeoutMillis: 2_000, on: "payments" }
        )
      ),
    HttpApiEndpoint.get("getDecisionHook", "/decisionHook", {
      disableCodecs: true,
      success: DecisionHook.Shown
    }).annotateMerge(
      describe("Ask for the decision hook", "The account's hook without its secret; null: none is set.")
    ),
    HttpApiEndpoint.delete("removeDecisionHook", "/decisionHook", {
      disableCodecs: true,
      success: DecisionHook.Shown
    }).annotateMerge(
      describe(
        "Remove the decision hook",
        "Within a second the service sends no more requests to its URL. The operator's hook stays."
      )
    )
  )
  .annotateEndpoints(RequiredScope, "policies")
  .middleware(Authentication)
  .annotate(OpenApi.Description, "The receiver that decides about requests before their acceptance.")

const one = { chainId: "8453" }
const ofOne = { disableCodecs: true, params: TopUps.Path.fields, error: ErrorEnvelope.schemas[404] } as const

const terms = {
  signer: Sample.signer,
  keep: "50000000000000000",
  dailyCap: "500000000000000000",
  targets: [
    {
      to: { salt: "payroll", walletCustody: 1 },
      below: "10000000000000000",
      upTo: "50000000000000000",
      dailyCap: "200000000000000000"
    }
  ]
}

/** Balances that a signer of the account keeps up. */
export const topUps = HttpApiGroup.make("topups")
  .add(
    HttpApiEndpoint.put("setTopUp", "/topups/:chainId", {
      ...ofOne,
      payload: TopUps.Terms,
      success: TopUps.Shown
    })
      .annotate(BodyBounds, { maxBytes: 65_536 })
      .annotateMerge(
        describe(
          "Set top-ups",
          "A signer of the account keeps up balances of its other signers and of its wallets on this chain. Replaces the terms before; without targets nothing is topped up.",
          { ...one, ...terms }
        )
      ),
    HttpApiEndpoint.get("getTopUp", "/topups/:chainId", {
      ...ofOne,
      success: TopUps.Shown
    }).annotateMerge(
      describe("Ask for top-ups", "The account's terms on this chain; null: none are set.", one)
    )
  )
  .annotateEndpoints(RequiredScope, "treasury")
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Balances that a signer of the account keeps up.")

export const useCases = {
  setDecisionHook: DecisionHook.set,
  getDecisionHook: DecisionHook.get,
  removeDecisionHook: DecisionHook.remove,
  setTopUp: TopUps.set,
  getTopUp: TopUps.get
}
