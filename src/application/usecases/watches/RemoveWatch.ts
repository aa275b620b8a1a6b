import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import type { Watches } from "../../ports/Watches.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Changes from "../../watches/Changes.js"
import * as Watch from "./Watch.js"

export const Response = Schema.Struct({
  watchId: Schema.String,
  state: Schema.Literal("removed")
}).annotate({ identifier: "RemovedWatch" })
export type Response = typeof Response.Type

/** Removes a watch with all that is owed of it. */
export const run = (caller: Caller, { watchId }: Watch.Path): Effect.Effect<Response, Failure, Watches> =>
  Changes.remove(Watch.actorOf(caller), watchId).pipe(
    Effect.as({ watchId, state: "removed" as const }),
    Watch.failing,
    Span.named("RemoveWatch")
  )
