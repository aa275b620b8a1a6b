import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { Watch } from "../../ports/Watches.js"
import { WatchesError } from "../../ports/Watches.js"
import type { Caller } from "../../request/Caller.js"
import { catalogue } from "../../request/Catalogue.js"
import { type Failure, invalid, NotFound } from "../../request/Failure.js"
import * as Reasons from "../../request/Reasons.js"
import { UnknownWatch } from "../../watches/Changes.js"

/** What the endpoints of watches share. */

export const Path = Schema.Struct({
  watchId: Schema.String.annotate({ description: "The watchId that POST /watches has answered." })
}).annotate({ identifier: "WatchPath" })
export type Path = typeof Path.Type

export const Shown = Schema.Struct({
  watchId: Schema.String,
  webhookId: Schema.String.annotate({ description: "The webhook that is told." }),
  chainId: Schema.Int,
  origin: Schema.NullOr(Schema.String).annotate({
    description:
      "Scheme and host of the account's own node; the rest is shown to nobody. Null: the operator's node, or the operator has changed the key that the URL was sealed with."
  }),
  contracts: Schema.Array(Schema.String).annotate({ description: "Empty: every contract." }),
  events: Schema.Array(Schema.String).annotate({
    description: "Definitions of the events that are told; several where eventName means several."
  }),
  fields: Schema.Record(Schema.String, Schema.Unknown),
  confirmations: Schema.Int,
  fromBlock: Schema.Int,
  nextBlock: Schema.Int.annotate({ description: "The block that is read next." }),
  state: Schema.Literals(["enabled", "paused", "held"]).annotate({
    description:
      "held: the service reads no further until the webhook has taken more of what it is owed, and then goes on by itself."
  }),
  told: Schema.Int.annotate({ description: "The last sequence number." }),
  waiting: Schema.Int.annotate({ description: "Events that are not delivered yet." }),
  dead: Schema.Int.annotate({ description: "Events that were given up." }),
  problem: Schema.NullOr(Schema.String).annotate({
    description: "Why the node is not read at present; null: it is."
  }),
  createdAt: Schema.Int.annotate({ description: "Unix seconds." })
}).annotate({ identifier: "Watch" })
export type Shown = typeof Shown.Type

/** Keys sit in paths: no more than where it leads. Null: it is the operator's. */
const originOf = ({ rpc }: Pick<Watch, "rpc">): string | null =>
  rpc === null ? null : new URL(Redacted.value(rpc)).origin

/** A caller is not told where the operator's node is. */
const problemOf = ({ problem, rpc }: Watch): string | null =>
  problem === null || rpc !== null ? problem : Reasons.text("operatorNodeUnread")

export const shown = (watch: Watch): Shown => ({
  watchId: watch.watchId,
  webhookId: watch.webhookId,
  chainId: Number(watch.chainId),
  origin: originOf(watch),
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

/** Another account's watch is not found, like none at all. A store that fails is a defect. */
export const failing = <A, R>(
  effect: Effect.Effect<A, UnknownWatch | WatchesError | Failure, R>
): Effect.Effect<A, Failure, R> =>
  Effect.catch(effect, (error): Effect.Effect<never, Failure> => {
    if (error instanceof WatchesError) {
      if (error.reason === "noWebhook")
        return Effect.fail(invalid("invalid_request", [{ path: "webhookId", message: error.message }]))
      return error.reason === "tooMany"
        ? Effect.fail(invalid("too_many_watches", [{ path: "", message: error.message }]))
        : Effect.die(error)
    }
    if (!(error instanceof UnknownWatch)) return Effect.fail(error)
    const code = "watch_not_found"
    return Effect.fail(new NotFound({ code, message: catalogue[code].text, details: [] }))
  })
