import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as ErrorDefinition from "../../../domain/abi/ErrorDefinition.js"
import * as Span from "../../observe/Span.js"
import { AbiStore } from "../../ports/AbiStore.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Definition from "./Definition.js"

const Input = Schema.Struct(Definition.inputFields).annotations({ identifier: "ErrorInput" })

export const Request = Schema.Struct({
  errorABI: Schema.Struct({
    type: Schema.Literal("error"),
    name: Schema.String,
    inputs: Schema.Array(Input),
    ...Definition.unreadFields
  }).annotations({ identifier: "ErrorAbi" })
}).annotations({ identifier: "AddErrorRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({
  status: Schema.Int.annotations({ description: "200" }),
  errorDef: Schema.String.annotations({ description: "The canonical definition." })
}).annotations({ identifier: "AddErrorResponse" })
export type Response = typeof Response.Type

/** Registers a custom error for the caller's account: reverts are decoded with it. */
export const run = (caller: Caller, { errorABI }: Request): Effect.Effect<Response, Failure, AbiStore> =>
  Effect.gen(function* () {
    const store = yield* AbiStore
    const error = yield* Effect.mapError(ErrorDefinition.fromJson(errorABI), Definition.misfit("errorABI"))
    yield* Definition.registered("errorABI", store.addError(caller.principal.accountId, error))
    return { status: 200, errorDef: error.canonical }
  }).pipe(Span.named("AddError"))
