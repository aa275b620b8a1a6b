import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Watches } from "../ports/Watches.js"
import type { Actor } from "../webhooks/Endpoints.js"

/** Changes of watches, under the same rules for the command line and the HTTP interface. */

/** The actor has no such watch. */
export class UnknownWatch extends Data.TaggedError("UnknownWatch")<{ readonly message: string }> {}

const unknown = (watchId: string) => new UnknownWatch({ message: `there is no watch ${watchId}` })

/** The form of all watch and webhook ids; other strings do not reach the store. */
export const isId = (text: string): boolean => /^[!-~]{1,64}$/.test(text)

export const find = Effect.fnUntraced(function* ({ accountId }: Pick<Actor, "accountId">, watchId: string) {
  const store = yield* Watches
  const found = isId(watchId) ? yield* store.get(watchId) : null
  return found !== null && (accountId === null || found.accountId === accountId)
    ? found
    : yield* unknown(watchId)
})

/** A paused watch keeps its position and resumes from there. */
export const setState = Effect.fnUntraced(function* (
  actor: Actor,
  watchId: string,
  state: "enabled" | "paused"
) {
  const store = yield* Watches
  yield* find(actor, watchId)
  yield* store.setState(watchId, state, actor.by)
  return yield* find(actor, watchId)
})

/** Removes its undelivered events too. */
export const remove = Effect.fnUntraced(function* (actor: Actor, watchId: string) {
  const store = yield* Watches
  yield* find(actor, watchId)
  if (!(yield* store.remove(watchId, actor.by))) return yield* unknown(watchId)
})
