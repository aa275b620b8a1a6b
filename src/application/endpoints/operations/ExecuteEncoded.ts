import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Executed } from "../../answers/TransactionResult.js"
import { type Failure, invalidAt } from "../../failures/Failure.js"
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
  operations: Schema.Array(GivenOps.EncodedOperation),
  settings: Settings.ForOps,
  preview: optional(Preview.wanted, false)
}).annotate({ identifier: "ExecuteEncodedRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

export type Requirements = Posted.Surroundings | Submissions.Submissions

/** The refusal of a request with an op that has neither a signature nor a signer. */
const unsigned = (settings: Request["settings"], operations: Request["operations"]): Failure | null => {
  if (settings.signer !== undefined) return null
  const index = operations.findIndex(({ signature }) => signature === undefined)
  if (index >= 0)
    return invalidAt(`operations[${index}].signature`, "either signature or settings.signer is required")
  if (settings.cosigners === undefined) return null
  return invalidAt("settings.cosigners", "settings.signer is required with cosigners")
}

const endpoint = "/executeEncoded"

const offerOf = (
  caller: Caller,
  { operations, preview, settings }: Request,
  body: string
): Effect.Effect<Offers.Offered<Executed>, Failure, Posted.Surroundings> => {
  const refused = unsigned(settings, operations)
  if (refused !== null) return Effect.fail(refused)
  const read = (where: GivenOps.Where) => GivenOps.decodeEncoded(operations, where)
  const by = settings.signer === undefined ? "service" : "signer"
  return Posted.offerOf(caller, { endpoint, settings, read, preview }, by, body)
}

export const kind = { endpoint, Request, Response, offerOf }

/**
 * Submits ops that were returned unsigned before, each with its own proof or, without one, with a proof by the
 * request's signer and cosigners. An op that was posted before is not sent again: its outcome is the answer.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Span.named("ExecuteEncoded")(Submissions.submit(caller, kind, request))
