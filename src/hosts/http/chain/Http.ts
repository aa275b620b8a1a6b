import * as GetReceipts from "../../../application/chain/GetReceipts.js"
import type { HandlersOf } from "../Handlers.js"
import type { group } from "./Api.js"

export const handlers = {
  receipt: (caller, request) => GetReceipts.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
