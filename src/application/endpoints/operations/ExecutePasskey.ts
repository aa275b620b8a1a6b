import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Executed } from "../../answers/TransactionResult.js"
import type { Failure } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import * as GivenOps from "../../prepare/given/GivenOps.js"
import * as Preview from "../../preview/Preview.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import type * as Offers from "../Offers.js"
import * as Submissions from "../Submissions.js"
import * as Posted from "./Posted.js"

export const Request = Schema.Struct({
  operations: Schema.Array(GivenOps.PasskeyOperation),
  settings: Settings.ForOps,
  preview: optional(Preview.wanted, false)
}).annotate({ identifier: "ExecutePasskeyRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

export type Requirements = Posted.Surroundings | Submissions.Submissions

const endpoint = "/executePasskey"

const offerOf = (
  caller: Caller,
  { operations, preview, settings }: Request,
  body: string
): Effect.Effect<Offers.Offered<Executed>, Failure, Posted.Surroundings> => {
  const read = (where: GivenOps.Where) => GivenOps.decodePasskey(operations, where)
  return Posted.offerOf(caller, { endpoint, settings, read, preview }, "service", body)
}

export const kind = { endpoint, Request, Response, offerOf }

/**
 * Submits ops of `/passkeyHash` with the browser authenticator's assertions, by the service's EOA. An op that was
 * posted before is not sent again: its outcome is the answer.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Span.named("ExecutePasskey")(Submissions.submit(caller, kind, request))
