import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as AddWatch from "../../../application/endpoints/subscriptions/AddWatch.js"
import * as Watch from "../../../application/endpoints/subscriptions/Watch.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { Authentication, describe, RequiredScope } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const one = { watchId: Sample.watchId }
const ofOne = { disableCodecs: true, params: Watch.Path.fields, error: ErrorEnvelope.schemas[404] } as const

/** Subscriptions of webhooks to contract events. */
export const group = HttpApiGroup.make("watches")
  .add(
    HttpApiEndpoint.post("addWatch", "/watches", {
      disableCodecs: true,
      payload: AddWatch.Request,
      success: AddWatch.Response
    }).annotateMerge(
      describe(
        "Add a watch",
        "The webhook receives matching events from fromBlock on in one sequence without a gap, and reorganisations as such. A repeat makes another watch; an account has at most 10,000 watches, and at most 100 without a value of an indexed field.",
        {
          webhookId: Sample.requestId,
          contracts: [Sample.token],
          eventDef: "event Transfer(address indexed from, address indexed to, uint256 value)",
          fields: { to: Sample.recipient },
          fromBlock: "latest",
          confirmations: 3,
          chainId: 8453
        }
      )
    ),
    HttpApiEndpoint.get("listWatches", "/watches", {
      disableCodecs: true,
      query: Watch.ListQuery.fields,
      success: Watch.List
    }).annotateMerge(
      describe("List watches", "The account's watches in the order of their making, by pages.", {
        cursor: "NDI",
        limit: "20"
      })
    ),
    HttpApiEndpoint.get("getWatch", "/watches/:watchId", {
      ...ofOne,
      success: Watch.Shown
    }).annotateMerge(
      describe("Get a watch", "How far it has read and what it is owed. Another account's is not found.", one)
    ),
    HttpApiEndpoint.patch("changeWatch", "/watches/:watchId", {
      ...ofOne,
      payload: Watch.ChangeRequest,
      success: Watch.Shown
    }).annotateMerge(
      describe(
        "Pause or resume a watch",
        "A paused watch keeps its position and continues there when it is enabled. The subject of a watch cannot change: add another watch and remove this one.",
        { ...one, state: "paused" }
      )
    ),
    HttpApiEndpoint.delete("removeWatch", "/watches/:watchId", {
      ...ofOne,
      success: Watch.Removed
    }).annotateMerge(describe("Remove a watch", "Removes it together with its undelivered events.", one))
  )
  .annotateEndpoints(RequiredScope, "webhooks")
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Events of contracts for webhooks.")

export const useCases = {
  addWatch: AddWatch.run,
  listWatches: Watch.list,
  getWatch: Watch.get,
  changeWatch: Watch.change,
  removeWatch: Watch.remove
}
