import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Results from "../../answers/Results.js"
import { Executed } from "../../answers/TransactionResult.js"
import type { Failure } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import type { Payers } from "../../payers/Payer.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers } from "../../ports/Signers.js"
import * as Call from "../../prepare/Call.js"
import * as EncodeCall from "../../prepare/EncodeCall.js"
import * as OpContext from "../../prepare/OpContext.js"
import { Operation } from "../../prepare/Operation.js"
import * as Links from "../../prepare/ops/Links.js"
import * as Preview from "../../preview/Preview.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { optional } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as Offers from "../Offers.js"
import * as Previews from "../Previews.js"
import * as Submissions from "../Submissions.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForSubmission,
  preview: optional(Preview.wanted, false)
}).annotate({ identifier: "ExecuteRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

type Surroundings = AbiStore | ChainRpc | Networks | Payers | Signers

export type Requirements = Surroundings | Submissions.Submissions

const endpoint = "/execute"

const offerOf = (
  caller: Caller,
  { operations, preview, settings }: Request,
  body: string
): Effect.Effect<Offers.Offered<Executed>, Failure, Surroundings> =>
  Effect.gen(function* () {
    const encoded = yield* EncodeCall.encodeAll(operations)
    const dependencies = yield* Effect.fromResult(Links.dependencies(operations))
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const context = yield* OpContext.load(caller, settings)
    yield* Effect.fromResult(Links.requireLedger(dependencies, context.connection))
    const calls = yield* Call.ofOperations(caller.requestId, encoded, dependencies, context)
    const { revert } = decoding
    const elements = calls.map(({ index }) => index)
    return Offers.make({
      caller,
      endpoint,
      context,
      calls,
      body,
      revert,
      mayWait: caller.isAsynchronous === true,
      preview: yield* Previews.of(caller, preview, { calls, context, revert }),
      Response,
      answer: (outcomes) =>
        Results.execution(
          elements,
          outcomes,
          (index, returned) => encoded[index]?.decode(returned),
          decoding,
          dependencies
        )
    })
  })

export const kind = { endpoint, Request, Response, offerOf }

/**
 * Encodes the operations as ERC-4337 ops, estimates, signs and executes them with the request's signers, and answers
 * with each op's outcome.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Span.named("ExecuteOperations")(Submissions.submit(caller, kind, request))
