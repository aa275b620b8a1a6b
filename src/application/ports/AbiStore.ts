import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { ErrorDefinition } from "../../domain/abi/ErrorDefinition.js"
import type { EventDefinition } from "../../domain/abi/Event.js"
import * as UseAbi from "../../domain/abi/UseAbi.js"
import type { AccountId } from "./Tenants.js"

/** Events and errors that one account may register together. */
export const maxDefinitions = 10_000

/** Characters that their canonical texts may have together: what is decoded with is held in memory. */
export const maxCharacters = 4_194_304

export class AbiStoreError extends Data.TaggedError("AbiStoreError")<{
  readonly reason: "full" | "unavailable"
  readonly message: string
}> {}

/** Why one definition more has no room; null when it has. */
export const refusal = (definitions: number, characters: number): AbiStoreError | null => {
  const full = (message: string) => new AbiStoreError({ reason: "full", message })
  if (definitions >= maxDefinitions) return full(`the account has ${maxDefinitions} definitions already`)
  return characters > maxCharacters
    ? full(`the definitions of the account would have more than ${maxCharacters} characters`)
    : null
}

/**
 * The event and error definitions that an account has registered, in the order of their registration. What was
 * registered through any process is seen by all of them from then on.
 */
export class AbiStore extends Context.Service<
  AbiStore,
  {
    /** The same array as before while nothing was registered in between: what is made of it may be kept. */
    readonly events: (account: AccountId) => Effect.Effect<ReadonlyArray<EventDefinition>, AbiStoreError>
    /** The same array as before while nothing was registered in between. */
    readonly errors: (account: AccountId) => Effect.Effect<ReadonlyArray<ErrorDefinition>, AbiStoreError>
    /** Both of them, in one look. */
    readonly definitions: (
      account: AccountId
    ) => Effect.Effect<Omit<UseAbi.UseAbi, "functions">, AbiStoreError>
    /** Registering the same canonical definition again changes nothing, also when there is no room for more. */
    readonly addEvent: (account: AccountId, event: EventDefinition) => Effect.Effect<void, AbiStoreError>
    readonly addError: (account: AccountId, error: ErrorDefinition) => Effect.Effect<void, AbiStoreError>
  }
>()("castellan/AbiStore") {}

/** Definitions of the operator, for all accounts alike: they count as registered. None unless something else is provided. */
export const OperatorAbi = Context.Reference<UseAbi.UseAbi>("castellan/OperatorAbi", {
  defaultValue: (): UseAbi.UseAbi => UseAbi.empty
})
