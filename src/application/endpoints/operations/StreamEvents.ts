import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { WakeUps } from "../../answers/WakeUps.js"
import type { Failure } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import * as Events from "../../ports/journal/Events.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"
import { EventStream } from "./EventStream.js"
import * as GetRequest from "./GetRequest.js"

export const Query = Schema.Struct({
  after: optional(
    Schema.String.check(
      Schema.isPattern(/^(?:0|[1-9][0-9]{0,8})$/u, { message: "expected the id of an event" })
    ).annotate({
      description:
        "The id of the last event that the caller has. The header Last-Event-ID means the same, and takes precedence."
    })
  )
}).annotate({ identifier: "StreamEventsQuery" })
export type Query = typeof Query.Type

/** Most events per read, and most events buffered for a client that does not read. */
const page = 100

/** Whether the request has its answer after these events; `before` is the state before them. */
const isFinalAfter = (events: ReadonlyArray<Events.RequestEvent>, before: boolean): boolean =>
  events.reduce((final, { kind }) => Events.isEnd(kind) || (final && kind !== "reopened"), before)

interface Place {
  readonly after: number
  readonly final: boolean
}

/** Whether the request was final after its events up to this one. */
const wasFinal = (journal: RequestJournal["Service"], requestId: string, after: number) =>
  Effect.gen(function* () {
    let place: Place = { after: 0, final: false }
    while (place.after < after) {
      const events = yield* journal.events(requestId, place.after, page)
      const known = events.filter(({ sequence }) => sequence <= after)
      const last = known.at(-1)
      if (last === undefined) break
      place = { after: last.sequence, final: isFinalAfter(known, place.final) }
    }
    return place.final
  })

/** Streams an accepted request's events, from one of them on, until it is final. */
export const run = (
  caller: Caller,
  { after = "0", requestId }: GetRequest.Request & Query
): Effect.Effect<EventStream, Failure, RequestJournal | WakeUps> =>
  Effect.gen(function* () {
    const journal = yield* RequestJournal
    const wakeUps = yield* WakeUps
    yield* GetRequest.find(caller, requestId)
    const begin: Place = {
      after: Number(after),
      final: yield* Effect.orDie(wasFinal(journal, requestId, Number(after)))
    }
    const fresh = yield* Effect.orDie(journal.events(requestId, begin.after, 1))
    if (begin.final && fresh.length === 0) return new EventStream(null)
    const next = ({ after }: Place) =>
      wakeUps.until(
        requestId,
        // Retry while the journal does not answer.
        Effect.match(journal.events(requestId, after, page), {
          onFailure: () => null,
          onSuccess: (events) => (events.length === 0 ? null : events)
        })
      )
    return new EventStream(
      Stream.paginate(begin, (place) =>
        Effect.map(next(place), (events) => {
          const final = isFinalAfter(events, place.final)
          const after = events.at(-1)?.sequence ?? place.after
          // A full page may have more events after it.
          return [events, final && events.length < page ? Option.none() : Option.some({ after, final })]
        })
      )
    )
  }).pipe(Span.named("StreamEvents"))
