import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Fragment from "../../../domain/abi/Fragment.js"
import { invalidAt, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import { AbiStore, type AbiStoreError } from "../../ports/AbiStore.js"
import { optional } from "../../request/Fields.js"

const unread = optional(
  Schema.Unknown.annotateKey({ description: "Old compilers and Vyper write it; it means nothing here." })
)

/** Members that compilers and libraries add to fragments and inputs, and that the service ignores. */
export const unreadFields = { gas: unread, signature: unread, unit: unread }

/** Input fields that events and errors share. The use case checks types and names. */
export const inputFields = {
  name: optional(Schema.String),
  type: Schema.String.annotate({
    description: "For example uint256, address[2][], tuple, (address,uint256)[]."
  }),
  internalType: optional(Schema.String),
  components: optional(
    Schema.Array(Schema.Unknown).annotate({
      description: "The parts of a tuple, each an object with name, type, internalType and components."
    })
  ),
  ...unreadFields
}

/**
 * Registers a definition from the request's field for the caller's account. A wrong definition fails with the path of
 * the error. A full registry is the caller's failure; a failing one is a defect.
 */
export const register = Effect.fnUntraced(function* <D extends { readonly canonical: string }>(
  field: string,
  parsed: Result.Result<D, Fragment.InvalidDefinition>,
  add: (store: AbiStore["Service"], definition: D) => Effect.Effect<void, AbiStoreError>
) {
  const definition = yield* Effect.fromResult(
    Result.mapError(parsed, ({ path, why }) => invalidAt(path === "" ? field : `${field}.${path}`, why))
  )
  yield* Effect.catch(add(yield* AbiStore, definition), (error) =>
    error.reason === "full"
      ? Effect.fail(
          unprocessable("registry_full", [
            { path: field, message: Reasons.text("registryFull", { problem: error.message }) }
          ])
        )
      : Effect.die(error)
  )
  return definition.canonical
})
