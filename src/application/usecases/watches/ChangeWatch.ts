import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import type { Watches } from "../../ports/Watches.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Changes from "../../watches/Changes.js"
import * as Watch from "./Watch.js"

export const Request = Schema.Struct({
  state: Schema.Literals(["enabled", "paused"]).annotate({
    description:
      "paused: nothing is read, and what it was told is delivered. enabled: reads on from where it was paused."
  })
}).annotate({ identifier: "ChangeWatchRequest" })
export type Request = typeof Request.Type

export const Response = Watch.Shown
export type Response = typeof Response.Type

/** Pauses or resumes it. What it is about stays: its sequence is of that alone. */
export const run = (
  caller: Caller,
  { state, watchId }: Request & Watch.Path
): Effect.Effect<Response, Failure, Watches> =>
  Changes.setState(Watch.actorOf(caller), watchId, state).pipe(
    Effect.map(Watch.shown),
    Watch.failing,
    Span.named("ChangeWatch")
  )
