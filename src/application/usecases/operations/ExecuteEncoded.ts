import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as EncodedSubmission from "../../intake/encoded/EncodedSubmission.js"
import { Requests } from "../../lanes/requests/Requests.js"
import * as Span from "../../observe/Span.js"
import * as EncodedOps from "../../prepare/given/GivenOps.js"
import type { Caller } from "../../request/Caller.js"
import { type Failure, invalid } from "../../request/Failure.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"
import * as Offers from "./Offers.js"
import * as Submissions from "./Submissions.js"

export const Request = Schema.Struct({
  operations: Schema.Array(EncodedOps.EncodedOperation),
  settings: Settings.ForOps
}).annotate({ identifier: "ExecuteEncodedRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = EncodedSubmission.Requirements | Submissions.Submissions

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
    { path: "settings.cosigners", message: "settings.signer is required beside cosigners" }
  ])
}

/**
 * Submits ops that were handed out, with the proof that came with them or, where there is none, with one by the
 * request's signer and cosigners. An op that was posted before is not sent again: its outcome is the answer.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.gen(function* () {
    const requests = yield* Requests
    const refused = unsigned(request)
    if (refused !== null) return yield* Effect.fail(refused)
    const { operations, settings } = request
    const posted = {
      endpoint: kind.endpoint,
      settings,
      read: (context: EncodedOps.Where) => EncodedOps.encoded(operations, context)
    }
    const by = settings.signer === undefined ? "service" : "signer"
    return yield* Submissions.submit(
      caller,
      Request,
      request,
      (body) => Offers.given(caller, posted, by, body),
      requests.run(kind, caller, request, EncodedSubmission.work(caller, posted, by))
    )
  }).pipe(Span.named("ExecuteEncoded"))
