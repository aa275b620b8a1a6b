import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as ErrorDefinition from "../../../domain/abi/ErrorDefinition.js"
import * as Span from "../../observe/Span.js"
import type { Caller } from "../../request/Caller.js"
import * as Definition from "./Definition.js"

const Input = Schema.Struct(Definition.inputFields).annotate({ identifier: "ErrorInput" })

export const Request = Schema.Struct({
  errorABI: Schema.Struct({
    type: Schema.Literal("error"),
    name: Schema.String,
    inputs: Schema.Array(Input),
    ...Definition.unreadFields
  }).annotate({ identifier: "ErrorAbi" })
}).annotate({ identifier: "AddErrorRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({
  status: Schema.Int.annotate({ description: "200" }),
  errorDef: Schema.String.annotate({ description: "The canonical definition." })
}).annotate({ identifier: "AddErrorResponse" })
export type Response = typeof Response.Type

/** Registers a custom error for the caller's account, to decode reverts. */
export const run = ({ principal: { accountId } }: Caller, { errorABI }: Request) =>
  Definition.register("errorABI", ErrorDefinition.fromJson(errorABI), (store, error) =>
    store.addError(accountId, error)
  ).pipe(
    Effect.map((errorDef) => ({ status: 200, errorDef })),
    Span.named("AddError")
  )
