import * as AddError from "../../../application/registry/AddError.js"
import * as AddEvent from "../../../application/registry/AddEvent.js"
import type { HandlersOf } from "../Handlers.js"
import type { group } from "./Api.js"

export const handlers = {
  addEvent: (caller, request) => AddEvent.run(caller, request),
  addError: (caller, request) => AddError.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
