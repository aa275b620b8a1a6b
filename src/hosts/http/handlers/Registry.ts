import * as AddError from "../../../application/usecases/registry/AddError.js"
import * as AddEvent from "../../../application/usecases/registry/AddEvent.js"
import type { group } from "../contract/Registry.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  addEvent: (caller, request) => AddEvent.run(caller, request),
  addError: (caller, request) => AddError.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
