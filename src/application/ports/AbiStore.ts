import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { ErrorDefinition } from "../../domain/abi/ErrorDefinition.js"
import type { EventDefinition } from "../../domain/abi/Event.js"
import * as UseAbi from "../../domain/abi/UseAbi.js"
import type { AccountId } from "./Tenants.js"

/** Most events and errors that one account may register together. */
export const maxDefinitions = 10_000

/** Most characters of one account's canonical definitions together. Decoders hold the definitions in memory. */
export const maxCharacters = 4_194_304

/** The store cannot be read or written; the request may be repeated. */
export class AbiStoreError extends Data.TaggedError("AbiStoreError")<{
  readonly reason: "full" | "unavailable"
  readonly message: string
}> {}

/**
 * Returns the error that refuses one more definition; null when there is room for it.
 *
 * @example AbiStore.refusal(1, 100)
 * // null
 */
export const refusal = (definitions: number, characters: number): AbiStoreError | null => {
  const full = (message: string) => new AbiStoreError({ reason: "full", message })
  if (definitions >= maxDefinitions) return full(`the account has ${maxDefinitions} definitions already`)
  return characters > maxCharacters
    ? full(`the definitions of the account would have more than ${maxCharacters} characters`)
    : null
}

/**
 * The event and error definitions that an account has registered, in registration order. Every process sees a
 * definition as soon as any process has registered it.
 */
export class AbiStore extends Context.Service<
  AbiStore,
  {
    /** Returns the same array until the account registers another event, so derived values may be cached. */
    readonly events: (account: AccountId) => Effect.Effect<ReadonlyArray<EventDefinition>, AbiStoreError>
    /** Returns the same array until the account registers another error. */
    readonly errors: (account: AccountId) => Effect.Effect<ReadonlyArray<ErrorDefinition>, AbiStoreError>
    /** Reads both lists together. */
    readonly definitions: (
      account: AccountId
    ) => Effect.Effect<Omit<UseAbi.UseAbi, "functions">, AbiStoreError>
    /** Registering the same canonical definition again changes nothing, even when the account is full. */
    readonly addEvent: (account: AccountId, event: EventDefinition) => Effect.Effect<void, AbiStoreError>
    readonly addError: (account: AccountId, error: ErrorDefinition) => Effect.Effect<void, AbiStoreError>
  }
>()("castellan/AbiStore") {}

/** The operator's definitions, which count as registered for every account. Default: none. */
export const OperatorAbi = Context.Reference<UseAbi.UseAbi>("castellan/OperatorAbi", {
  defaultValue: (): UseAbi.UseAbi => UseAbi.empty
})
