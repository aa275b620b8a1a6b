import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import { Operation } from "../../prepare/Operation.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"
import * as Offers from "./Offers.js"
import * as Submissions from "./Submissions.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForSubmission
}).annotate({ identifier: "ExecuteRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = Offers.Surroundings | Submissions.Submissions

export const kind = {
  endpoint: "/execute",
  Request,
  Response,
  elements: ({ operations }: Request) => operations.length
}

/**
 * Encodes the operations as ERC-4337 ops, estimates, signs and executes them with the request's signers, and answers
 * with what became of each.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Span.named("ExecuteOperations")(
    Submissions.submit(caller, Request, request, (body) => Offers.execute(caller, request, body))
  )
