import * as CheckWallets from "../../../application/usecases/wallets/CheckWallets.js"
import * as CreateWallets from "../../../application/usecases/wallets/CreateWallets.js"
import * as PredictWallets from "../../../application/usecases/wallets/PredictWallets.js"
import type { group } from "../contract/Wallets.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  predict: (caller, request) => PredictWallets.run(caller, request),
  check: (caller, request) => CheckWallets.run(caller, request),
  create: (caller, request) => CreateWallets.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
