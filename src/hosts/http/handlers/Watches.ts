import * as AddWatch from "../../../application/usecases/watches/AddWatch.js"
import * as ChangeWatch from "../../../application/usecases/watches/ChangeWatch.js"
import * as GetWatch from "../../../application/usecases/watches/GetWatch.js"
import * as ListWatches from "../../../application/usecases/watches/ListWatches.js"
import * as RemoveWatch from "../../../application/usecases/watches/RemoveWatch.js"
import type { group } from "../contract/Watches.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  addWatch: (caller, request) => AddWatch.run(caller, request),
  listWatches: (caller, request) => ListWatches.run(caller, request),
  getWatch: (caller, request) => GetWatch.run(caller, request),
  changeWatch: (caller, request) => ChangeWatch.run(caller, request),
  removeWatch: (caller, request) => RemoveWatch.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
