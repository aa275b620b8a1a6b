import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { AccountId } from "../../ports/Tenants.js"

/** An idempotency key is its account's, at one endpoint. */
export interface Place {
  readonly accountId: AccountId
  readonly endpoint: string
  readonly key: string
}

/** Requests of one idempotency key go one after the other in this process, until one of them is accepted. */
export interface KeyOrder {
  readonly inOrder: <A, E, R>(place: Place, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Whether one of the key is before its acceptance. */
  readonly isHeld: (place: Place) => boolean
}

const nameOf = ({ accountId, endpoint, key }: Place): string => JSON.stringify([accountId, endpoint, key])

export const make = (): KeyOrder => {
  const entries = new Map<string, { readonly lock: Semaphore.Semaphore; holders: number }>()
  return {
    inOrder: (place, effect) => {
      const name = nameOf(place)
      return Effect.acquireUseRelease(
        Effect.sync(() => {
          const entry = entries.get(name) ?? { lock: Semaphore.makeUnsafe(1), holders: 0 }
          entry.holders += 1
          entries.set(name, entry)
          return entry
        }),
        ({ lock }) => lock.withPermits(1)(effect),
        (entry) =>
          Effect.sync(() => {
            entry.holders -= 1
            if (entry.holders === 0) entries.delete(name)
          })
      )
    },
    isHeld: (place) => entries.has(nameOf(place))
  }
}
