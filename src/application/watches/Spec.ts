import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Event from "../../domain/abi/Event.js"
import * as EventFilter from "../../domain/abi/EventFilter.js"
import type { FollowedWatch, WatchSpec } from "../ports/Watches.js"
import * as EventLoop from "../runtime/EventLoop.js"
import type { Matched } from "./Matching.js"

/** The filters of a watch. A definition that its fields do not fit was left out when the watch was made. */
const filtersOf = ({ events, fields }: WatchSpec): Effect.Effect<ReadonlyArray<EventFilter.EventFilter>> =>
  Effect.map(
    EventLoop.map(events, (text) =>
      Result.flatMap(Event.parse(text, { canonical: true }), (definition) =>
        EventFilter.make(definition, fields)
      )
    ),
    Arr.getSuccesses
  )

export const matched = ({ fromBlock, spec, watch }: FollowedWatch): Effect.Effect<Matched> =>
  Effect.map(filtersOf(spec), (filters) => ({
    watch,
    fromBlock,
    contracts: new Set(spec.contracts),
    filters
  }))
