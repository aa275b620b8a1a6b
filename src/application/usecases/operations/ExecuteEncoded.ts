import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import * as GivenOps from "../../prepare/given/GivenOps.js"
import type { Caller } from "../../request/Caller.js"
import { type Failure, invalid } from "../../request/Failure.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"
import * as Offers from "./Offers.js"
import * as Submissions from "./Submissions.js"

export const Request = Schema.Struct({
  operations: Schema.Array(GivenOps.EncodedOperation),
  settings: Settings.ForOps
}).annotate({ identifier: "ExecuteEncodedRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = Offers.Surroundings | Submissions.Submissions

export const kind = {
  endpoint: "/executeEncoded",
  Request,
  Response,
  elements: ({ operations }: Request) => operations.length
}

/** The first op that nobody is there to sign. */
const unsigned = ({ operations, settings }: Request): Failure | null => {
  if (settings.signer !== undefined) return null
  const index = operations.findIndex(({ signature }) => signature === undefined)
  if (index >= 0)
    return invalid("invalid_request", [
      {
        path: `operations[${index}].signature`,
        message: "either signature or settings.signer is required"
      }
    ])
  if (settings.cosigners === undefined) return null
  return invalid("invalid_request", [
    { path: "settings.cosigners", message: "settings.signer is required with cosigners" }
  ])
}

/**
 * Submits ops that were handed out, with the proof that came with them or, where there is none, with one by the
 * request's signer and cosigners. An op that was posted before is not sent again: its outcome is the answer.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.gen(function* () {
    const refused = unsigned(request)
    if (refused !== null) return yield* Effect.fail(refused)
    const { operations, settings } = request
    const read = (where: GivenOps.Where) => GivenOps.encoded(operations, where)
    const by = settings.signer === undefined ? "service" : "signer"
    return yield* Submissions.submit(caller, Request, request, (body) =>
      Offers.given(caller, { endpoint: kind.endpoint, settings, read }, by, body)
    )
  }).pipe(Span.named("ExecuteEncoded"))
