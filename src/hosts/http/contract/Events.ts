import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as EventReader from "../../../application/chain/logs/EventReader.js"
import * as FilterEvents from "../../../application/endpoints/events/FilterEvents.js"
import * as GetEvents from "../../../application/endpoints/events/GetEvents.js"
import { Authentication, post } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const limits = `At most ${EventReader.maxBlocks.toLocaleString("en")} blocks and ${EventReader.bounds.results.toLocaleString("en")} events per request, of ${EventReader.bounds.bytes.toLocaleString("en")} bytes together; ranges that the node refuses are read in parts.`

export const group = HttpApiGroup.make("events")
  .add(
    post("filterEvent", "read", FilterEvents, {
      summary: "Find transactions by their events",
      description: `Hashes of the transactions in which matching events are, in chain order. ${limits}`,
      example: {
        contracts: [Sample.token],
        eventName: "Transfer",
        fields: { to: [Sample.recipient, Sample.factory] },
        fromBlock: "0x0",
        toBlock: "latest",
        rpc: Sample.rpc
      }
    }),
    post("getEvents", "read", GetEvents, {
      summary: "Retrieve events",
      description: `Matching events, decoded, in chain order. ${limits}`,
      example: {
        contracts: [Sample.token],
        eventDef: "event Transfer(address indexed from, address indexed to, uint256 value)",
        fields: { to: Sample.recipient },
        fromBlock: "earliest",
        rpc: Sample.rpc
      }
    })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Find registered and built-in events on the chain.")

export const useCases = {
  filterEvent: FilterEvents.run,
  getEvents: GetEvents.run
}
