import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Failure, invalidAt, notFound } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Span from "../../observe/Span.js"
import { type Watch, Watches, WatchesError } from "../../ports/Watches.js"
import type { Caller } from "../../request/Caller.js"
import * as Changes from "../../watches/Changes.js"
import * as Endpoints from "../../webhooks/Endpoints.js"
import * as Page from "../Page.js"

/** The endpoints of watches, except `AddWatch`. */

export const Path = Schema.Struct({
  watchId: Schema.String.annotate({ description: "The watchId that POST /watches has answered." })
}).annotate({ identifier: "WatchPath" })
type Path = typeof Path.Type

export const Shown = Schema.Struct({
  watchId: Schema.String,
  webhookId: Schema.String.annotate({ description: "The webhook that receives the events." }),
  chainId: Schema.Int,
  origin: Schema.NullOr(Schema.String).annotate({
    description:
      "Scheme and host of the account's own node; the full URL is never shown. Null: the operator's node, or the operator has changed the key that sealed the URL."
  }),
  contracts: Schema.Array(Schema.String).annotate({ description: "Empty: every contract." }),
  events: Schema.Array(Schema.String).annotate({
    description: "Definitions of the delivered events; several when eventName names several."
  }),
  fields: Schema.Record(Schema.String, Schema.Unknown),
  confirmations: Schema.Int,
  fromBlock: Schema.Int,
  nextBlock: Schema.Int.annotate({ description: "The next block to read." }),
  state: Schema.Literals(["enabled", "paused", "held"]).annotate({
    description:
      "held: reading stops until the webhook has accepted more of its undelivered events, and then continues."
  }),
  told: Schema.Int.annotate({ description: "The last sequence number." }),
  waiting: Schema.Int.annotate({ description: "Events that are not delivered yet." }),
  dead: Schema.Int.annotate({ description: "Events whose delivery ended without success." }),
  problem: Schema.NullOr(Schema.String).annotate({
    description: "Why reading the node fails. Null: reading succeeds."
  }),
  createdAt: Schema.Int.annotate({ description: "Unix seconds." })
}).annotate({ identifier: "Watch" })

/** Callers never learn the operator's node. */
const problemOf = ({ problem, rpc }: Watch): string | null =>
  problem === null || rpc !== null ? problem : Reasons.text("operatorNodeUnread")

export const shown = (watch: Watch): typeof Shown.Type => ({
  watchId: watch.watchId,
  webhookId: watch.webhookId,
  chainId: Number(watch.chainId),
  origin: Endpoints.originOf({ url: watch.rpc }),
  contracts: watch.spec.contracts,
  events: watch.spec.events,
  fields: watch.spec.fields,
  confirmations: watch.confirmations,
  fromBlock: Number(watch.fromBlock),
  nextBlock: Number(watch.nextBlock),
  state: watch.state,
  told: watch.sequence,
  waiting: watch.waiting,
  dead: watch.dead,
  problem: problemOf(watch),
  createdAt: Math.floor(watch.createdAt / 1_000)
})

export const actorOf = ({ principal: { accountId }, requestId }: Caller) => ({ accountId, by: requestId })

/** Another account's watch is not found, like an unknown one. A store that fails is a defect. */
export const toFailure = <A, R>(
  effect: Effect.Effect<A, Changes.UnknownWatch | WatchesError | Failure, R>
): Effect.Effect<A, Failure, R> =>
  Effect.catch(effect, (error): Effect.Effect<never, Failure> => {
    if (error instanceof WatchesError) {
      if (error.reason === "noWebhook") return invalidAt("webhookId", error.message)
      return error.reason === "tooMany" ? invalidAt("", error.message, "too_many_watches") : Effect.die(error)
    }
    if (!(error instanceof Changes.UnknownWatch)) return Effect.fail(error)
    return notFound("watch_not_found")
  })

export const get = (caller: Caller, { watchId }: Path) =>
  Changes.find(actorOf(caller), watchId).pipe(Effect.map(shown), toFailure, Span.named("GetWatch"))

export const ChangeRequest = Schema.Struct({
  state: Schema.Literals(["enabled", "paused"]).annotate({
    description:
      "paused: no blocks are read, and earlier events are delivered. enabled: reading continues from the paused block."
  })
}).annotate({ identifier: "ChangeWatchRequest" })

/** Pauses or resumes a watch. Its specification never changes, since its sequence belongs to it. */
export const change = (caller: Caller, { state, watchId }: typeof ChangeRequest.Type & Path) =>
  Changes.setState(actorOf(caller), watchId, state).pipe(
    Effect.map(shown),
    toFailure,
    Span.named("ChangeWatch")
  )

export const Removed = Schema.Struct({
  watchId: Schema.String,
  state: Schema.Literal("removed")
}).annotate({ identifier: "RemovedWatch" })

/** Removes a watch and its undelivered events. */
export const remove = (caller: Caller, { watchId }: Path) =>
  Changes.remove(actorOf(caller), watchId).pipe(
    Effect.as({ watchId, state: "removed" as const }),
    toFailure,
    Span.named("RemoveWatch")
  )

export const ListQuery = Schema.Struct(Page.query("watches")).annotate({ identifier: "ListWatchesQuery" })

export const List = Schema.Struct({
  watches: Schema.Array(Shown).annotate({ description: "In the order of their creation." }),
  next: Page.next
}).annotate({ identifier: "WatchList" })

const placeOf = (cursor: string): number | null => {
  const text = Result.getOrElse(Base64Url.decodeString(cursor), () => "")
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : null
}

/** The account's watches, a page at a time. */
export const list = Effect.fnUntraced(function* (
  { principal }: Caller,
  { cursor, limit }: typeof ListQuery.Type
) {
  const after = cursor === undefined ? undefined : placeOf(cursor)
  if (after === null) return yield* Effect.fail(Page.foreignCursor)
  const most = Page.limitOf(limit)
  const store = yield* Watches
  const found = yield* Effect.orDie(store.list(principal.accountId, { after, limit: most + 1 }))
  const { next, page } = Page.cut(found, most, ({ number }) => Base64Url.encode(String(number)))
  return { watches: page.map(shown), next }
}, Span.named("ListWatches"))
