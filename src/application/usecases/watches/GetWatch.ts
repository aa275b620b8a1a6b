import * as Effect from "effect/Effect"
import * as Span from "../../observe/Span.js"
import type { Watches } from "../../ports/Watches.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Changes from "../../watches/Changes.js"
import * as Watch from "./Watch.js"

export const Response = Watch.Shown
export type Response = typeof Response.Type

/** One watch of the account. */
export const run = (caller: Caller, { watchId }: Watch.Path): Effect.Effect<Response, Failure, Watches> =>
  Changes.find(Watch.actorOf(caller), watchId).pipe(
    Effect.map(Watch.shown),
    Watch.failing,
    Span.named("GetWatch")
  )
