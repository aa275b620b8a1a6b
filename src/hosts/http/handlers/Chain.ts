import * as GetReceipts from "../../../application/usecases/chain/GetReceipts.js"
import * as ReadContracts from "../../../application/usecases/chain/ReadContracts.js"
import type { group } from "../contract/Chain.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  read: (caller, request) => ReadContracts.run(caller, request),
  receipt: (caller, request) => GetReceipts.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
