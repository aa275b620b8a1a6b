import * as ListNetworks from "../../../application/network/ListNetworks.js"
import type { HandlersOf } from "../Handlers.js"
import type { group } from "./Api.js"

export const handlers = {
  listNetworks: (caller) => ListNetworks.run(caller)
} satisfies HandlersOf<typeof group, unknown>
