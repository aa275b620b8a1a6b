import * as ListNetworks from "../../../application/usecases/network/ListNetworks.js"
import type { group } from "../contract/Network.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  listNetworks: (caller) => ListNetworks.run(caller)
} satisfies HandlersOf<typeof group, unknown>
