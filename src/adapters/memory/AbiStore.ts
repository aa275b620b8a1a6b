import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AbiStore, type AbiStoreError, refusal } from "../../application/ports/AbiStore.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import type { ErrorDefinition } from "../../domain/abi/ErrorDefinition.js"
import type { EventDefinition } from "../../domain/abi/Event.js"

/** Definitions of one kind in the order of their registration, replaced as a whole by each of them. */
interface Definitions<A> {
  readonly canonical: Set<string>
  list: ReadonlyArray<A>
}

interface Registry {
  readonly events: Definitions<EventDefinition>
  readonly errors: Definitions<ErrorDefinition>
  characters: number
}

const none: ReadonlyArray<never> = []

const add = <A extends { readonly canonical: string }>(
  registry: Registry,
  definitions: Definitions<A>,
  definition: A
): Effect.Effect<void, AbiStoreError> => {
  const { canonical } = definition
  if (definitions.canonical.has(canonical)) return Effect.void
  const characters = registry.characters + canonical.length
  const refused = refusal(registry.events.list.length + registry.errors.list.length, characters)
  if (refused !== null) return Effect.fail(refused)
  registry.characters = characters
  definitions.canonical.add(canonical)
  definitions.list = [...definitions.list, definition]
  return Effect.void
}

/** Definitions that end with the process. */
export const make: Effect.Effect<Context.Tag.Service<typeof AbiStore>> = Effect.sync(() => {
  const registries = new Map<AccountId, Registry>()
  const of = (account: AccountId): Registry => {
    const registry = registries.get(account) ?? {
      events: { canonical: new Set<string>(), list: none },
      errors: { canonical: new Set<string>(), list: none },
      characters: 0
    }
    registries.set(account, registry)
    return registry
  }
  return {
    events: (account) => Effect.sync(() => registries.get(account)?.events.list ?? none),
    errors: (account) => Effect.sync(() => registries.get(account)?.errors.list ?? none),
    addEvent: (account, event) => Effect.suspend(() => add(of(account), of(account).events, event)),
    addError: (account, error) => Effect.suspend(() => add(of(account), of(account).errors, error))
  }
})

export const layer: Layer.Layer<AbiStore> = Layer.effect(AbiStore, make)
