import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { RequestEvent } from "../../../application/ports/journal/Events.js"

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

export const answer = (body: Stream.Stream<string>): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(Stream.encodeText(body), {
    contentType: "text/event-stream",
    // Reverse proxies hold answers back otherwise.
    headers: { "x-accel-buffering": "no" }
  })

/** Nothing more will come: clients that reconnect by themselves end here. */
export const over = HttpServerResponse.empty()
