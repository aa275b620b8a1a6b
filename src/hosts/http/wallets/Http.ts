import * as CheckWallets from "../../../application/wallet/CheckWallets.js"
import * as CreateWallets from "../../../application/wallet/CreateWallets.js"
import * as PredictWallets from "../../../application/wallet/PredictWallets.js"
import type { HandlersOf } from "../Handlers.js"
import type { group } from "./Api.js"

export const handlers = {
  predict: (caller, request) => PredictWallets.run(caller, request),
  check: (caller, request) => CheckWallets.run(caller, request),
  create: (caller, request) => CreateWallets.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
