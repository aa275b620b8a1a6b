import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Address } from "../../../domain/primitives/Address.js"
import * as InvalidValue from "../../../domain/primitives/InvalidValue.js"
import * as Custody from "../../../domain/wallet/Custody.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import { type Failure, invalidAt } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { optional } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as EventLoop from "../../runtime/EventLoop.js"

export const Request = Schema.Struct({
  accounts: Schema.Array(
    Schema.Struct({
      salt: optional(Schema.String),
      wallet: optional(Schema.String),
      walletCustody: optional(Schema.Finite).annotateKey({
        description: "1 to 5. Needed only when no wallet address is given."
      })
    })
  ),
  settings: Settings.ForReading
}).annotate({ identifier: "CheckRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Array(
  Schema.Struct({
    exists: Schema.Boolean,
    wallet: Schema.String,
    salt: Schema.String,
    error: Schema.NullOr(Schema.String)
  })
).annotate({ identifier: "CheckResponse" })
export type Response = typeof Response.Type

type Account = Request["accounts"][number]

/** The most specific message of one account's failure. */
const textOf = (failure: Failure): string => {
  const [detail] = failure.details
  return failure.code === "invalid_request" && detail !== undefined ? detail.message : failure.message
}

/** The address that an account names, or its element's error. */
const addressOf = (
  account: Account,
  formula: Wallets.Formula,
  profile: Connection.Connection["profile"]
): Result.Result<Address, string> => {
  const { salt = "", wallet = "" } = account
  return Result.gen(function* () {
    const custody =
      account.walletCustody === undefined
        ? 1
        : yield* InvalidValue.toText(Custody.ofWallet(account.walletCustody))
    if (salt === "" || account.walletCustody !== undefined)
      return yield* Wallets.select({ salt, wallet, walletCustody: custody }, formula, profile, "").pipe(
        Result.mapError(textOf)
      )
    const text = yield* Result.mapError(Wallets.saltOf(salt, ""), textOf)
    if (wallet === "") return yield* Result.fail("walletCustody is required with a salt")
    const named = yield* Result.mapError(
      Wallets.select({ wallet, walletCustody: custody }, formula, profile, ""),
      textOf
    )
    const isOfSalt =
      // A legacy wallet has one address for all custodies.
      Wallets.custodies.some((each) => formula.predict(text, each, false) === named) ||
      formula.predict(text, custody, true) === named
    return isOfSalt ? named : yield* Result.fail("the salt names no such wallet, whatever its custody is")
  })
}

/** Reports which wallets are deployed: proxies of the beacon, recognised by their code. */
export const run = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure, ChainFacts | ChainRpc | Networks> =>
  Effect.gen(function* () {
    const { accounts, settings } = request
    yield* Decoding.own(settings.useABI)
    const unspecified = accounts.findIndex(({ walletCustody }) => walletCustody === 0)
    if (unspecified >= 0)
      return yield* invalidAt(
        `accounts[${unspecified}].walletCustody`,
        "expected an integer from 1 to 5, got 0",
        "invalid_wallet_custody_type"
      )
    const { chain, profile, trust } = yield* Connection.open(caller, settings)
    const formula = yield* Effect.fromResult(Wallets.formula(profile, settings))
    const facts = yield* ChainFacts
    const addresses = yield* EventLoop.map(accounts, (account) => addressOf(account, formula, profile))
    const known = [...new Set(Arr.getSuccesses(addresses))]
    const states = yield* Effect.mapError(
      Wallets.read(facts, chain, formula.initCode, known),
      Connection.refusal(trust)
    )
    return accounts.map((account, index) => {
      const salt = account.salt ?? ""
      const address = addresses[index]
      if (address === undefined || Result.isFailure(address))
        return { exists: false, wallet: account.wallet ?? "", salt, error: address?.failure ?? null }
      const wallet = address.success
      const state = states.get(wallet)
      const custody = account.walletCustody
      if (
        state?._tag === "deployed" &&
        custody !== undefined &&
        custody !== state.configuration.config.custody
      )
        return {
          exists: true,
          wallet,
          salt,
          error: `the wallet has custody ${state.configuration.config.custody}`
        }
      return {
        exists: state?._tag === "deployed",
        wallet,
        salt,
        error: state?._tag === "foreign" ? "wallet not supported: other code stands at this address" : null
      }
    })
  }).pipe(Span.named("CheckWallets"))
