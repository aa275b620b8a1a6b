import * as FilterEvents from "../../../application/chain/FilterEvents.js"
import * as GetEvents from "../../../application/chain/GetEvents.js"
import type { HandlersOf } from "../Handlers.js"
import type { group } from "./Api.js"

export const handlers = {
  filterEvent: (caller, request) => FilterEvents.run(caller, request),
  getEvents: (caller, request) => GetEvents.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
