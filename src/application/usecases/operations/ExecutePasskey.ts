import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as EncodedSubmission from "../../intake/encoded/EncodedSubmission.js"
import { Requests } from "../../lanes/requests/Requests.js"
import * as Span from "../../observe/Span.js"
import * as EncodedOps from "../../prepare/given/GivenOps.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"
import * as Offers from "./Offers.js"
import * as Submissions from "./Submissions.js"

export const Request = Schema.Struct({
  operations: Schema.Array(EncodedOps.PasskeyOperation),
  settings: Settings.ForOps
}).annotate({ identifier: "ExecutePasskeyRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = EncodedSubmission.Requirements | Submissions.Submissions

export const kind = {
  endpoint: "/executePasskey",
  Request,
  Response,
  elements: ({ operations }: Request) => operations.length
}

/**
 * Submits ops of `/passkeyHash` with what the browser's authenticator made of them, by the service's own EOA. An op that
 * was posted before is not sent again: its outcome is the answer.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.flatMap(Requests, (requests) => {
    const { operations, settings } = request
    const posted = {
      endpoint: kind.endpoint,
      settings,
      read: (context: EncodedOps.Where) => EncodedOps.asserted(operations, context)
    }
    return Submissions.submit(
      caller,
      Request,
      request,
      (body) => Offers.given(caller, posted, "service", body),
      requests.run(kind, caller, request, EncodedSubmission.work(caller, posted, "service"))
    )
  }).pipe(Span.named("ExecutePasskey"))
