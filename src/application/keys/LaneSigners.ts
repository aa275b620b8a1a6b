import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { LaneAccess } from "../ports/journal/Transactions.js"
import type { Signer, SignerError, Signers, SystemSigners } from "../ports/Signers.js"
import * as Keys from "./Keys.js"

export type SignerOf = (access: Pick<LaneAccess, "accountId" | "key">) => Effect.Effect<Signer, SignerError>

export const SignerOf: Context.Key<SignerOf, SignerOf> = Context.Service("castellan/SignerOf")

/** The key of a lane, for work that no request waits for. */
export const resolver =
  (signers: Signers["Service"], system: SystemSigners["Service"]): SignerOf =>
  ({ accountId, key }) =>
    Effect.map(typeof key === "string" ? system[key] : signers.resolve(accountId, key), Keys.withPatience)
