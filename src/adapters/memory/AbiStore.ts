import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AbiStore, AbiStoreError } from "../../application/ports/AbiStore.js"
import type { AccountId } from "../../application/ports/Accounts.js"
import type { ErrorDefinition } from "../../domain/abi/ErrorDefinition.js"
import type { EventDefinition } from "../../domain/abi/Event.js"

/** Events and errors of one account together. */
export const maxDefinitions = 10_000

/** Definitions by their canonical text, in the order of their registration. */
interface Registry {
  readonly events: Map<string, EventDefinition>
  readonly errors: Map<string, ErrorDefinition>
}

const add = <A extends { readonly canonical: string }>(
  registry: Registry,
  definitions: Map<string, A>,
  definition: A
): Effect.Effect<void, AbiStoreError> => {
  if (definitions.has(definition.canonical)) return Effect.void
  if (registry.events.size + registry.errors.size >= maxDefinitions)
    return Effect.fail(
      new AbiStoreError({ reason: "full", message: `the account has ${maxDefinitions} definitions already` })
    )
  definitions.set(definition.canonical, definition)
  return Effect.void
}

/** Definitions that end with the process. */
export const make: Effect.Effect<Context.Tag.Service<typeof AbiStore>> = Effect.sync(() => {
  const registries = new Map<AccountId, Registry>()
  const of = (account: AccountId): Registry => {
    const registry = registries.get(account) ?? { events: new Map(), errors: new Map() }
    registries.set(account, registry)
    return registry
  }
  return {
    events: (account) => Effect.sync(() => [...(registries.get(account)?.events.values() ?? [])]),
    errors: (account) => Effect.sync(() => [...(registries.get(account)?.errors.values() ?? [])]),
    addEvent: (account, event) => Effect.suspend(() => add(of(account), of(account).events, event)),
    addError: (account, error) => Effect.suspend(() => add(of(account), of(account).errors, error))
  }
})

export const layer: Layer.Layer<AbiStore> = Layer.effect(AbiStore, make)
