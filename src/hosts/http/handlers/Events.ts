import * as FilterEvents from "../../../application/usecases/events/FilterEvents.js"
import * as GetEvents from "../../../application/usecases/events/GetEvents.js"
import type { group } from "../contract/Events.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  filterEvent: (caller, request) => FilterEvents.run(caller, request),
  getEvents: (caller, request) => GetEvents.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
