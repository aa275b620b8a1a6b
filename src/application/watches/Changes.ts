import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Watches } from "../ports/Watches.js"
import type { Actor } from "../webhooks/Endpoints.js"

/** Watches as the command line and the HTTP interface change them: the same rules for both. */

/** The actor has no such watch. */
export class UnknownWatch extends Data.TaggedError("UnknownWatch")<{ readonly message: string }> {}

const unknown = (watchId: string) => new UnknownWatch({ message: `there is no watch ${watchId}` })

/** No watch and no webhook has an id of another form; whatever else a caller says is not taken to the store. */
export const isId = (text: string): boolean => /^[!-~]{1,64}$/.test(text)

export const find = Effect.fnUntraced(function* ({ accountId }: Pick<Actor, "accountId">, watchId: string) {
  const store = yield* Watches
  const found = isId(watchId) ? yield* store.get(watchId) : null
  return found !== null && (accountId === null || found.accountId === accountId)
    ? found
    : yield* unknown(watchId)
})

/** Stays where it is while it is paused, and reads on from there. */
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

/** With all that is owed of it. */
export const remove = Effect.fnUntraced(function* (actor: Actor, watchId: string) {
  const store = yield* Watches
  yield* find(actor, watchId)
  if (!(yield* store.remove(watchId, actor.by))) return yield* unknown(watchId)
})
