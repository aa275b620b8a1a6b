import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as WalletAddress from "../../../domain/wallet/WalletAddress.js"
import { type Failure, invalid } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { SaltText, StoredCustody } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as EventLoop from "../../runtime/EventLoop.js"

export const Request = Schema.Struct({
  accounts: Schema.Array(Schema.Struct({ salt: SaltText, walletCustody: StoredCustody })),
  settings: Settings.ForPrediction
}).annotate({ identifier: "PredictRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Array(
  Schema.Struct({ salt: Schema.String, wallet: Schema.String, error: Schema.NullOr(Schema.String) })
).annotate({ identifier: "PredictResponse" })
export type Response = typeof Response.Type

/** Predicts the address of each salt and custody: pure, without any network, and the same on every chain. */
export const run = (_caller: Caller, request: Request): Effect.Effect<Response, Failure> =>
  Effect.gen(function* () {
    const { beaconAdminAddress, beaconAdminCreationCode, factory, useABI } = request.settings
    yield* Decoding.own(useABI)
    const salts = yield* EventLoop.map(request.accounts, ({ salt }, index) =>
      Wallets.saltOf(salt, `accounts[${index}].salt`)
    )
    const malformed = salts.flatMap((salt) => (Result.isSuccess(salt) ? [] : salt.failure.details))
    if (malformed.length > 0) return yield* invalid("invalid_salt_format", malformed)
    const code = yield* Effect.fromResult(Wallets.creationCode(beaconAdminCreationCode))
    const initCodeHash = WalletAddress.initCodeHash(code, beaconAdminAddress)
    const addressOf = WalletAddress.predictor({ factory, initCodeHash })
    return yield* EventLoop.map(salts.filter(Result.isSuccess), (salt, index) => ({
      salt: salt.success,
      wallet: addressOf(salt.success, request.accounts[index]?.walletCustody ?? 1, false),
      error: null
    }))
  }).pipe(Span.named("PredictWallets"))
