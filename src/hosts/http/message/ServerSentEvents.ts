import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { RequestEvent } from "../../../application/ports/journal/Events.js"
import type { Answer } from "./HttpMessage.js"

/** Often enough for proxies that end a connection on which nothing happens. */
const beat = "15 seconds"

const blockOf = (requestId: string, { at, data, kind, sequence }: RequestEvent): string => {
  const body = JSON.stringify({ requestId, sequence, type: kind, at: Math.floor(at / 1_000), data })
  return `id: ${sequence}\nevent: ${kind}\ndata: ${body}\n\n`
}

/** The events, one block each, and a comment now and then. A client that does not read holds all of it up. */
export const text = (requestId: string, events: Stream.Stream<RequestEvent>): Stream.Stream<string> => {
  const blocks = Stream.mapArray(events, (some) => [some.map((event) => blockOf(requestId, event)).join("")])
  const beats = Stream.as(Stream.fromSchedule(Schedule.spaced(beat)), ": still here\n\n")
  return Stream.merge(blocks, beats, { haltStrategy: "left" }).pipe(Stream.prepend([": events\n\n"]))
}

export const answer = (body: Stream.Stream<string>): Answer => ({
  status: 200,
  headers: {
    "content-type": "text/event-stream",
    // Reverse proxies hold answers back otherwise.
    "x-accel-buffering": "no"
  },
  body
})

/** Nothing more will come: clients that reconnect by themselves end here. */
export const over: Answer = { status: 204, headers: {}, body: "" }

/** Writes one chunk after the other; `write` returns once the client has taken enough of it. */
export const drive = (
  body: Stream.Stream<string>,
  write: (chunk: string) => Effect.Effect<void>
): Effect.Effect<void> => Effect.interruptible(Stream.runForEach(body, write))
