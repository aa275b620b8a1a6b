import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Results from "../../answers/Results.js"
import { Created } from "../../answers/TransactionResult.js"
import * as Connection from "../../chain/Connection.js"
import { type Failure, invalidAt } from "../../failures/Failure.js"
import * as Keys from "../../keys/Keys.js"
import * as Span from "../../observe/Span.js"
import type { Payers } from "../../payers/Payer.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import { type Signers, SystemSigners } from "../../ports/Signers.js"
import type { CreationCall } from "../../prepare/Call.js"
import * as OpContext from "../../prepare/OpContext.js"
import * as Account from "../../prepare/wallets/Account.js"
import * as WalletSpecs from "../../prepare/wallets/WalletSpecs.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import * as Settings from "../../request/Settings.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as Offers from "../Offers.js"
import * as Submissions from "../Submissions.js"

export const Request = Schema.Struct({
  accounts: Schema.Array(Account.schema),
  settings: Settings.ForSubmission
}).annotate({ identifier: "CreateRequest" })
export type Request = typeof Request.Type

export const Response = Created
export type Response = Created

export type Surroundings = AbiStore | ChainRpc | Networks | Payers | Signers | SystemSigners

export type Requirements = Surroundings | Submissions.Submissions

const endpoint = "/create"

const offerOf = (
  caller: Caller,
  { accounts, settings: { useABI, ...settings } }: Request,
  body: string
): Effect.Effect<Offers.Offered<Created>, Failure, Surroundings> =>
  Effect.gen(function* () {
    if (accounts.length === 0) return yield* invalidAt("accounts", "expected at least one account")
    // Passkeys of a whole request are seconds of work.
    const parsed = yield* EventLoop.each(accounts, (account, index) =>
      Effect.fromResult(Account.parse(account, index))
    )
    const decoding = yield* Decoding.load(caller, useABI)
    const signer = yield* Keys.resolve(caller, settings.signer)
    const resolved = yield* WalletSpecs.resolve(caller, parsed)
    const connection = yield* Connection.openOperator(caller, settings)
    const { deployer } = yield* SystemSigners
    const context = yield* OpContext.of(caller, {
      connection,
      submitter: signer.address,
      key: settings.signer,
      signers: [signer],
      settings,
      // No system key is used before the factory is known to be the account's own.
      pausables: Effect.gen(function* () {
        yield* Effect.fromResult(WalletSpecs.checkFactory(connection.profile, settings))
        const { address } = yield* Effect.mapError(deployer, Keys.refusal("settings.factory"))
        return [{ what: { kind: "signer", address }, path: "settings.factory" }] as const
      })
    })
    const wanted = yield* WalletSpecs.read(resolved, signer.address, context)
    return Offers.make({
      caller,
      endpoint,
      context,
      calls: wanted.map(
        ({ account, index, making, wallet }): CreationCall => ({
          requestId: caller.requestId,
          index,
          kind: "creation",
          wallet,
          custody: account.walletCustody,
          making,
          account,
          window: null,
          dependsOn: null
        })
      ),
      body,
      revert: decoding.revert,
      list: "accounts",
      Response,
      answer: (outcomes) =>
        Results.creation(
          wanted.map(({ account: { salt }, index, wallet }) => ({ index, salt, wallet })),
          outcomes,
          decoding
        )
    })
  })

export const kind = { endpoint, Request, Response, offerOf }

/**
 * Deploys wallets, several in one transaction. The operator's key signs the deployer's authorisation, so all reads use
 * the operator's node. The request's signer submits and pays for the transaction. Each wallet pays for its op with the
 * funds at its predicted address.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Span.named("CreateWallets")(Submissions.submit(caller, kind, request))
