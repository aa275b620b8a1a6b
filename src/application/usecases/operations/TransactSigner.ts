import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Address from "../../../domain/primitives/Address.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import * as Span from "../../observe/Span.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import { FunctionText, optional, shown } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"
import * as Offers from "./Offers.js"
import * as Submissions from "./Submissions.js"

export const Request = Schema.Struct({
  to: shown(Address.schema, { description: "Receiver of the transaction." }),
  funcSignature: optional(FunctionText).annotateKey({
    description: "Function to call; absent: a plain transfer of value."
  }),
  funcParams: optional(Schema.Array(Schema.Unknown), []).annotateKey({
    description: "Parameters as strings; arrays and tuples as JSON text or JSON arrays."
  }),
  value: shown(optional(Uint.schema, 0n), {
    description: "Wei sent with the transaction, decimal or 0x hex."
  }),
  settings: Settings.ForSigner
}).annotate({ identifier: "TransactSignerRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = Offers.Surroundings | Submissions.Submissions

export const kind = { endpoint: "/transactSigner", Request, Response }

/**
 * Sends a transaction of the signer's own EOA, by the same lane as its bundles. One that would revert is not sent: 422
 * with the reason.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Span.named("TransactSigner")(
    Submissions.submit(caller, Request, request, (body) => Offers.transact(caller, request, body))
  )
