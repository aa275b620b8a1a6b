import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import * as Account from "../../prepare/wallets/Account.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Settings from "../../request/Settings.js"
import { Created } from "../../request/TransactionResult.js"
import * as Offers from "../operations/Offers.js"
import * as Submissions from "../operations/Submissions.js"

/** Deploys wallets. */

export const Request = Schema.Struct({
  accounts: Schema.Array(Account.schema),
  settings: Settings.ForSubmission
}).annotate({ identifier: "CreateRequest" })
export type Request = typeof Request.Type

export const Response = Created
export type Response = Created

/** What its requests need beside the caller. */
export type Requirements = Offers.Surroundings | Submissions.Submissions

export const kind = {
  endpoint: "/create",
  Request,
  Response,
  elements: ({ accounts }: Request) => accounts.length,
  list: "accounts"
} as const

/**
 * Deploys wallets, several in one transaction. The deployer's authorisation and signature come from the operator's
 * own key, so that everything is read from the operator's own node; the request's signer submits and pays for the
 * transaction, and each wallet pays for its op out of what stands at its predicted address.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Submissions.submit(caller, Request, request, (body) => Offers.create(caller, request, body)).pipe(
    Span.named("CreateWallets")
  )
