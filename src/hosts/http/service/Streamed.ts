import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { EventStream } from "../../../application/endpoints/operations/EventStream.js"
import type { RequestEvent } from "../../../application/ports/journal/Events.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import { type Known, logDefect } from "./Exchange.js"

/** Shorter than proxies' idle time-outs. */
const beat = "15 seconds"

const blockOf = (requestId: string, { at, data, kind, sequence }: RequestEvent): string => {
  const body = JSON.stringify({
    requestId,
    sequence,
    type: kind,
    at: Math.floor(at / 1_000),
    atMillis: at,
    data
  })
  return `id: ${sequence}\nevent: ${kind}\ndata: ${body}\n\n`
}

/** Writes one block per event, and a comment now and then. A client that stops reading stalls its stream. */
const text = (requestId: string, events: Stream.Stream<RequestEvent>): Stream.Stream<string> => {
  const blocks = Stream.mapArray(events, (some) => [some.map((event) => blockOf(requestId, event)).join("")])
  const beats = Stream.as(Stream.fromSchedule(Schedule.spaced(beat)), ": still here\n\n")
  return Stream.merge(blocks, beats, { haltStrategy: "left" }).pipe(Stream.prepend([": events\n\n"]))
}

const tooMany = (most: number): Problem =>
  problem(
    "rate_limited",
    [{ path: "", message: `too many streams of events are open; an account may have ${most}` }],
    { headers: ErrorEnvelope.retryAfter(10) }
  )

export const answer = (
  { events }: EventStream,
  requestId: string,
  known: Known,
  inFlight: InFlightLimit
): Effect.Effect<HttpServerResponse.HttpServerResponse, Problem> =>
  Effect.contextWith((context) => {
    const accountId = known.principal?.accountId ?? ""
    // No further events: the 204 stops clients that reconnect automatically.
    if (events === null) return Effect.succeed(HttpServerResponse.empty())
    if (!inFlight.admitsStream(accountId)) return Effect.fail(tooMany(inFlight.most.streamsOfAccount))
    // The client resumes a broken stream; only the operator sees the cause.
    const whole = Stream.catchCause(events, (cause) =>
      Cause.hasInterruptsOnly(cause) ? Stream.empty : Stream.fromEffectDrain(logDefect(known, cause))
    )
    const body = inFlight.boundedStream(accountId, text(requestId, whole)).pipe(
      Stream.encodeText,
      // Keeps the loggers and the clock of the request, independent of the reader's.
      Stream.provideContext(context)
    )
    return Effect.succeed(
      HttpServerResponse.stream(body, {
        contentType: "text/event-stream",
        // Otherwise reverse proxies buffer the response.
        headers: { "x-accel-buffering": "no" }
      })
    )
  })
