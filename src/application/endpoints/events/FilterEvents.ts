import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as EventQuery from "../../chain/logs/EventQuery.js"
import * as EventReader from "../../chain/logs/EventReader.js"
import * as Span from "../../observe/Span.js"
import type { Caller } from "../../request/Caller.js"

export const Request = EventQuery.Request
export type Request = EventQuery.Request

export const Response = Schema.Struct({
  requestStatus: Schema.Int.annotate({ description: "200" }),
  txHashes: Schema.Array(Schema.String).annotate({
    description: "Transactions that contain matching events, each once, in chain order."
  })
}).annotate({ identifier: "FilterEventResponse" })
export type Response = typeof Response.Type

/** The transactions of the matching events. */
export const run = (caller: Caller, request: Request) =>
  Effect.map(EventReader.read(caller, request), (events) => ({
    requestStatus: 200,
    txHashes: [
      ...new Set(
        events.flatMap(({ log }) => (log.missing?.includes("transactionHash") === true ? [] : [log.txHash]))
      )
    ]
  })).pipe(Span.named("FilterEvents"))
