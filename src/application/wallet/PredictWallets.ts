import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Caller } from "../Caller.js"
import { codeAnnotation } from "../Catalogue.js"
import type { Failure } from "../Failure.js"
import * as Settings from "../Settings.js"

/** Custody values of wallets whose address can be derived: 1 to 5. */
export const Custody = Schema.Int.pipe(Schema.between(1, 5)).annotations({
  identifier: "StoredCustody",
  message: () => "expected an integer from 1 to 5",
  [codeAnnotation]: "invalid_wallet_custody_type"
})

export const Request = Schema.Struct({
  accounts: Schema.Array(Schema.Struct({ salt: Schema.String, walletCustody: Custody })),
  settings: Settings.ForPrediction
}).annotations({ identifier: "PredictRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Array(
  Schema.Struct({ salt: Schema.String, wallet: Schema.String, error: Schema.NullOr(Schema.String) })
).annotations({ identifier: "PredictResponse" })
export type Response = typeof Response.Type

export declare const run: (caller: Caller, request: Request) => Effect.Effect<Response, Failure>
