import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as EventQuery from "../../chain/logs/EventQuery.js"
import * as EventReader from "../../chain/logs/EventReader.js"
import * as Span from "../../observe/Span.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"

export const Request = EventQuery.Request
export type Request = EventQuery.Request

/** An event with its place on the chain. */
export const FoundEvent = Schema.Struct({
  txHash: Schema.String,
  blockNumber: Schema.Int,
  logIndex: Schema.Int.annotate({ description: "Place in the block." }),
  address: Schema.String,
  eventName: Schema.String,
  eventDef: Schema.String,
  args: Schema.Unknown.annotateKey({
    description:
      "By name, or an array when a parameter has none. Indexed values of dynamic types are their hashes."
  }),
  missing: optional(
    Schema.Array(Schema.String).annotate({
      description:
        "Members that the node's log lacks, or that cannot be read. Their values in this answer are placeholders. Without data the values of unindexed fields are null; without transactionHash txHash is empty."
    })
  )
}).annotate({ identifier: "FoundEvent" })

export const Response = Schema.Struct({
  requestStatus: Schema.Int.annotate({ description: "200" }),
  events: Schema.Array(FoundEvent).annotate({ description: "In chain order." })
}).annotate({ identifier: "GetEventsResponse" })
export type Response = typeof Response.Type

/** The matching events, decoded. */
export const run = (caller: Caller, request: Request) =>
  Effect.map(EventReader.read(caller, request), (events) => ({
    requestStatus: 200,
    events: events.map(({ decoded, definition, log }) => ({
      txHash: log.missing?.includes("transactionHash") === true ? "" : log.txHash,
      blockNumber: Number(log.blockNumber),
      logIndex: log.logIndex,
      address: log.address,
      eventName: definition.name,
      eventDef: definition.canonical,
      args: decoded.args,
      ...(log.missing !== undefined && { missing: log.missing })
    }))
  })).pipe(Span.named("GetEvents"))
