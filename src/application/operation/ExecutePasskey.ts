import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Caller } from "../Caller.js"
import { Engine } from "../engine/Engine.js"
import type { Failure } from "../Failure.js"
import * as Settings from "../Settings.js"
import { Executed } from "../TransactionResult.js"
import * as GivenOps from "./GivenOps.js"
import * as GivenSubmission from "./GivenSubmission.js"

export const Request = Schema.Struct({
  operations: Schema.Array(GivenOps.PasskeyOperation),
  settings: Settings.ForOps
}).annotations({ identifier: "ExecutePasskeyRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = GivenSubmission.Requirements

export const kind = { endpoint: "/executePasskey", Request, Response }

/**
 * Submits ops of `/passkeyHash` with what the browser's authenticator made of them, by the service's own EOA. An op that
 * was posted before is not sent again: its outcome is the answer.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.flatMap(Engine, ({ requests }) => {
    const { operations, settings } = request
    const posted = {
      endpoint: kind.endpoint,
      settings,
      read: (ground: GivenOps.Where) => GivenOps.asserted(operations, ground)
    }
    return requests.run(
      kind,
      caller,
      request,
      Effect.withSpan(GivenSubmission.work(caller, posted, "service"), "ExecutePasskey")
    )
  })
