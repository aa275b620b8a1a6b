import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Caller } from "../Caller.js"
import { Engine } from "../engine/Engine.js"
import { type Failure, invalid } from "../Failure.js"
import * as Settings from "../Settings.js"
import { Executed } from "../TransactionResult.js"
import * as GivenOps from "./GivenOps.js"
import * as GivenSubmission from "./GivenSubmission.js"

export const Request = Schema.Struct({
  operations: Schema.Array(GivenOps.EncodedOperation),
  settings: Settings.ForOps
}).annotations({ identifier: "ExecuteEncodedRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = GivenSubmission.Requirements

export const kind = { endpoint: "/executeEncoded", Request, Response }

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
    const { requests } = yield* Engine
    const refused = unsigned(request)
    if (refused !== null) return yield* Effect.fail(refused)
    const { operations, settings } = request
    const posted = {
      endpoint: kind.endpoint,
      settings,
      read: (ground: GivenOps.Where) => GivenOps.encoded(operations, ground)
    }
    const by = settings.signer === undefined ? "service" : "signer"
    return yield* requests.run(
      kind,
      caller,
      request,
      Effect.withSpan(GivenSubmission.work(caller, posted, by), "ExecuteEncoded")
    )
  })
