import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Event from "../../../domain/abi/Event.js"
import * as Span from "../../observe/Span.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"
import * as Definition from "./Definition.js"

const Input = Schema.Struct({
  ...Definition.inputFields,
  indexed: optional(Schema.Boolean.annotate({ description: "Whether it is a topic. Default false." }), false)
}).annotate({ identifier: "EventInput" })

export const Request = Schema.Struct({
  eventABI: Schema.Struct({
    type: Schema.Literal("event"),
    name: Schema.String,
    inputs: Schema.Array(Input),
    anonymous: optional(Schema.Boolean, false),
    ...Definition.unreadFields
  }).annotate({ identifier: "EventAbi" })
}).annotate({ identifier: "AddEventRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({
  status: Schema.Int.annotate({ description: "200" }),
  eventDef: Schema.String.annotate({
    description: "The canonical definition, which /filterEvent and /getEvents take."
  })
}).annotate({ identifier: "AddEventResponse" })
export type Response = typeof Response.Type

/** Registers an event for the caller's account, to decode and to filter logs. */
export const run = ({ principal: { accountId } }: Caller, { eventABI }: Request) =>
  Definition.register("eventABI", Event.fromJson(eventABI), (store, event) =>
    store.addEvent(accountId, event)
  ).pipe(
    Effect.map((eventDef) => ({ status: 200, eventDef })),
    Span.named("AddEvent")
  )
