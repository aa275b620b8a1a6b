import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { ErrorDefinition } from "../../domain/abi/ErrorDefinition.js"
import type { EventDefinition } from "../../domain/abi/Event.js"
import type { AccountId } from "./Accounts.js"

export class AbiStoreError extends Data.TaggedError("AbiStoreError")<{
  readonly reason: "full" | "unavailable"
  readonly message: string
}> {}

/** The event and error definitions that an account has registered. */
export class AbiStore extends Context.Tag("castellan/AbiStore")<
  AbiStore,
  {
    readonly events: (account: AccountId) => Effect.Effect<ReadonlyArray<EventDefinition>, AbiStoreError>
    readonly errors: (account: AccountId) => Effect.Effect<ReadonlyArray<ErrorDefinition>, AbiStoreError>
    /** Registering the same canonical definition again changes nothing. */
    readonly addEvent: (account: AccountId, event: EventDefinition) => Effect.Effect<void, AbiStoreError>
    readonly addError: (account: AccountId, error: ErrorDefinition) => Effect.Effect<void, AbiStoreError>
  }
>() {}
