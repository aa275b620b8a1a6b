import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { RevertData } from "../../answers/TransactionResult.js"
import { elementFailure, revertDataOf } from "../../failures/Elements.js"
import type { Failure } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Span from "../../observe/Span.js"
import { Operation } from "../../prepare/Operation.js"
import * as ServiceEoa from "../../prepare/ServiceEoa.js"
import * as Preview from "../../preview/Preview.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as HandOut from "../HandOut.js"
import type * as EstimateGas from "./EstimateGas.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForOps,
  preview: optional(Preview.wanted, false)
}).annotate({ identifier: "PasskeyHashRequest" })
export type Request = typeof Request.Type

/** The result of one operation: an op for a passkey to sign, or the reason for its failure. */
export const PasskeyHashResult = Schema.Struct({
  userOpHash: Schema.NullOr(Schema.String).annotate({ description: "The op's ERC-4337 hash." }),
  signingHash: Schema.NullOr(Schema.String).annotate({
    description: "The challenge: binds the op to the operation's window and to its bundler."
  }),
  encodedUserOp: Schema.NullOr(Schema.String).annotate({
    description: "ABI encoding of the op, its signature empty: send it unchanged to /executePasskey."
  }),
  bundler: Schema.NullOr(Schema.String).annotate({
    description: "The service's own EOA, the only one that may submit the op; zero: any."
  }),
  aggrIndexes: Schema.Array(Schema.Int).annotate({
    description: "Indexes of the request's operations that this op carries."
  }),
  error: Schema.NullOr(Schema.String),
  data: RevertData,
  ...Preview.shown
}).annotate({ identifier: "PasskeyHashResult" })
type PasskeyHashResult = typeof PasskeyHashResult.Type

export const Response = Schema.Struct({
  status: Schema.Int.annotate({ description: "0 success, 1 an operation failed" }),
  results: Schema.Array(PasskeyHashResult).annotate({
    description: "One for each operation, in the order of the request."
  })
}).annotate({ identifier: "PasskeyHashResponse" })
export type Response = typeof Response.Type

export type Requirements = EstimateGas.Requirements

const without = (index: number, error: string): PasskeyHashResult => ({
  userOpHash: null,
  signingHash: null,
  encodedUserOp: null,
  bundler: null,
  aggrIndexes: [index],
  error
})

/**
 * Encodes and estimates the operations, and returns the ops with the hashes for the wallet's passkeys. The service's
 * EOA will submit them.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.gen(function* () {
    const { operations, preview, settings } = request
    const { bundler, failed, ops, previews } = yield* HandOut.make(caller, {
      operations,
      settings,
      route: Effect.tap(ServiceEoa.route(caller, settings), ({ connection }) =>
        ServiceEoa.assertSubmits(connection, settings)
      ),
      byPasskeys: true,
      endpoint: "/executePasskey",
      preview: preview === true,
      dummy: (config) =>
        config.passkeys.length === 0
          ? Result.fail(
              elementFailure(
                "threshold_not_met",
                Reasons.text("threshold", { have: 0, threshold: config.threshold })
              )
            )
          : Result.succeed(HandOut.costliest(config))
    })
    const byIndex = new Map(ops.map((each) => [each.index, each]))
    const results = operations.map((_, index): PasskeyHashResult => {
      const own = byIndex.get(index)
      if (own === undefined) {
        const failure = failed.get(index)
        return { ...without(index, failure?.message ?? ""), ...revertDataOf(failure) }
      }
      const { encodedUserOp, signingHash, userOpHash } = own
      return {
        userOpHash,
        signingHash,
        encodedUserOp,
        bundler,
        aggrIndexes: [index],
        error: null,
        ...previews.get(index)
      }
    })
    return { status: failed.size === 0 ? 0 : 1, results }
  }).pipe(
    Effect.catchTag("Unprocessable", (failure) => {
      const error = HandOut.textOf(failure)
      return Effect.succeed({
        status: 1,
        results: request.operations.map((_, index) => without(index, error))
      })
    }),
    Span.named("PasskeyHash")
  )
