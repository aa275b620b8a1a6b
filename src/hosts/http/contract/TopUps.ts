import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as TopUps from "../../../application/endpoints/policies/TopUps.js"
import { Authentication, BodyBounds, described, RequiredScope } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const one = { chainId: "8453" }

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
export const group = HttpApiGroup.make("topups")
  .add(
    HttpApiEndpoint.put("setTopUp", "/topups/:chainId", {
      disableCodecs: true,
      params: TopUps.Path.fields,
      payload: TopUps.Terms,
      success: TopUps.Shown
    })
      .annotate(BodyBounds, { maxBytes: 65_536 })
      .annotateMerge(
        described(
          "Set top-ups",
          "A signer of the account keeps up balances of its other signers and of its wallets on this chain. Replaces the terms before; without targets nothing is topped up.",
          { ...one, ...terms }
        )
      ),
    HttpApiEndpoint.get("getTopUp", "/topups/:chainId", {
      disableCodecs: true,
      params: TopUps.Path.fields,
      success: TopUps.Shown
    }).annotateMerge(
      described("Ask for top-ups", "The account's terms on this chain; null: none are set.", one)
    )
  )
  .annotateEndpoints(RequiredScope, "treasury")
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Balances that a signer of the account keeps up.")

export const useCases = { setTopUp: TopUps.set, getTopUp: TopUps.get }
