import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as ListNetworks from "../../../application/endpoints/chain/ListNetworks.js"
import { Authentication, describe, RequiredScope } from "./EndpointAnnotations.js"

/** Networks open to the account. */
export const group = HttpApiGroup.make("network")
  .add(
    HttpApiEndpoint.get("listNetworks", "/networks", { disableCodecs: true, success: ListNetworks.Response })
      .annotate(RequiredScope, "read")
      .annotateMerge(
        describe(
          "List the networks",
          "The chains on which this account may work, with contract addresses and creation code: all values of settings except the node and the signer."
        )
      )
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Chains, and the contracts there.")

export const useCases = {
  listNetworks: ListNetworks.run
}
