import * as GetReceipts from "../../../application/chain/GetReceipts.js"
import * as ReadContracts from "../../../application/chain/ReadContracts.js"
import type { HandlersOf } from "../Handlers.js"
import type { group } from "./Api.js"

export const handlers = {
  read: (caller, request) => ReadContracts.run(caller, request),
  receipt: (caller, request) => GetReceipts.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
