import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as EventReader from "../../../application/chain/EventReader.js"
import * as FilterEvents from "../../../application/usecases/events/FilterEvents.js"
import * as GetEvents from "../../../application/usecases/events/GetEvents.js"
import { Authentication, Example, RequiredScope } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const limits = `At most ${EventReader.maxBlocks.toLocaleString("en")} blocks and ${EventReader.bounds.results.toLocaleString("en")} events per request, of ${EventReader.bounds.bytes.toLocaleString("en")} bytes together; what the node refuses to answer at once is read in parts.`

/** Events on the chain. */
export const group = HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.post("filterEvent", "/filterEvent")
      .setPayload(FilterEvents.Request)
      .addSuccess(FilterEvents.Response)
      .annotate(RequiredScope, "read")
      .annotate(OpenApi.Summary, "Find transactions by their events")
      .annotate(
        OpenApi.Description,
        `Hashes of the transactions in which matching events are, in chain order. ${limits}`
      )
      .annotate(Example, {
        contracts: [Sample.token],
        eventName: "Transfer",
        fields: { to: [Sample.recipient, Sample.factory] },
        fromBlock: "0x0",
        toBlock: "latest",
        rpc: Sample.rpc
      })
  )
  .add(
    HttpApiEndpoint.post("getEvents", "/getEvents")
      .setPayload(GetEvents.Request)
      .addSuccess(GetEvents.Response)
      .annotate(RequiredScope, "read")
      .annotate(OpenApi.Summary, "Retrieve events")
      .annotate(OpenApi.Description, `Matching events, decoded, in chain order. ${limits}`)
      .annotate(Example, {
        contracts: [Sample.token],
        eventDef: "event Transfer(address indexed from, address indexed to, uint256 value)",
        fields: { to: Sample.recipient },
        fromBlock: "earliest",
        rpc: Sample.rpc
      })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Find registered and built-in events on the chain.")
