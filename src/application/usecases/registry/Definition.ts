import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Fragment from "../../../domain/abi/Fragment.js"
import type { AbiStoreError } from "../../ports/AbiStore.js"
import { type InvalidRequest, invalid, type Unprocessable, unprocessable } from "../../request/Failure.js"
import { optional } from "../../request/Fields.js"
import * as Reasons from "../../request/Reasons.js"

const unread = optional(
  Schema.Unknown.annotateKey({ description: "Old compilers and Vyper write it; it means nothing here." })
)

/** What compilers and libraries add to fragments and to inputs, and nothing is made of. */
export const unreadFields = { gas: unread, signature: unread, unit: unread }

/** What inputs of events and of errors have in common. The use case holds them to the rules of types and names. */
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

/** A definition that cannot be: the place in the request that is wrong. */
export const misfit =
  (field: string) =>
  ({ path, why }: Fragment.InvalidDefinition): InvalidRequest =>
    invalid("invalid_request", [{ path: path === "" ? field : `${field}.${path}`, message: why }])

/** A registry that is full is the caller's matter; one that fails is not. */
export const registered = (
  field: string,
  adding: Effect.Effect<void, AbiStoreError>
): Effect.Effect<void, Unprocessable> =>
  Effect.catch(adding, (error) =>
    error.reason === "full"
      ? Effect.fail(
          unprocessable("registry_full", [
            { path: field, message: Reasons.text("registryFull", { problem: error.message }) }
          ])
        )
      : Effect.die(error)
  )
