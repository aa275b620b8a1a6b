import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Custody from "../../../domain/wallet/Custody.js"
import { RevertData } from "../../answers/TransactionResult.js"
import { revertDataOf } from "../../failures/Elements.js"
import type { Failure } from "../../failures/Failure.js"
import * as Keys from "../../keys/Keys.js"
import type { Engine } from "../../lanes/Engine.js"
import * as Span from "../../observe/Span.js"
import type { Rules } from "../../policies/Rules.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { OpJournal } from "../../ports/journal/OpJournal.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers, SystemSigners } from "../../ports/Signers.js"
import * as OpContext from "../../prepare/OpContext.js"
import { Operation } from "../../prepare/Operation.js"
import * as ServiceEoa from "../../prepare/ServiceEoa.js"
import * as Preview from "../../preview/Preview.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as HandOut from "../HandOut.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForOps,
  preview: optional(Preview.wanted, false)
}).annotate({ identifier: "EstimateGasRequest" })
export type Request = typeof Request.Type

/** An op that is ready to be signed and sent to `/executeEncoded`. */
export const EstimatedOp = Schema.Struct({
  encodedUserOp: Schema.String.annotate({
    description: "ABI encoding of the op, its signature empty: send it unchanged."
  }),
  userOpHash: Schema.String.annotate({
    description:
      "The op's ERC-4337 hash. Sign it instead of signingHash to bind the op to no window and no bundler."
  }),
  signingHash: Schema.String.annotate({
    description: "To be signed: binds the op to the operation's window and to its bundler."
  }),
  bundler: Schema.String.annotate({ description: "The only EOA that may submit it; zero: any." }),
  aggrIndexes: Schema.Array(Schema.Int).annotate({
    description: "Indexes of the request's operations that this op carries."
  }),
  ...Preview.shown
}).annotate({ identifier: "EstimatedOp" })

export const Response = Schema.Struct({
  status: Schema.Int.annotate({ description: "0 failed, 1 success" }),
  gas: Schema.Int.annotate({ description: "Sum of the ops' gas limits, buffers included." }),
  userOps: Schema.Array(EstimatedOp),
  error: Schema.NullOr(Schema.String),
  data: RevertData
}).annotate({ identifier: "EstimateGasResponse" })
export type Response = typeof Response.Type

export type Requirements =
  | AbiStore
  | ChainRpc
  | Engine
  | OpJournal
  | Networks
  | Rules
  | Signers
  | SystemSigners

/** Route with the request's signer as the submitter, or the service's EOA where it names none. */
const routeOf = (
  caller: Caller,
  settings: Settings.ForOps
): Effect.Effect<ServiceEoa.Route, Failure, ChainRpc | Networks | Signers | SystemSigners> =>
  Effect.gen(function* () {
    if (settings.signer === undefined) return yield* ServiceEoa.route(caller, settings)
    const { address } = yield* Keys.resolve(caller, settings.signer)
    const connection = yield* OpContext.connect(caller, settings)
    return { connection, submitter: address, byService: false }
  })

/**
 * Encodes and estimates the operations as `/execute` would, and returns the unsigned ops, for submission by the
 * request's signer, or by the service's EOA where it names none.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.gen(function* () {
    const { bundler, failed, ops, previews } = yield* HandOut.make(caller, {
      ...request,
      endpoint: "/executeEncoded",
      preview: request.preview === true,
      route: routeOf(caller, request.settings),
      byPasskeys: request.operations.some(({ walletCustody }) => Custody.usesPasskeys(walletCustody)),
      dummy: (config) => Result.succeed(HandOut.costliest(config))
    })
    const [firstFailed] = [...failed].sort(([a], [b]) => a - b)
    return {
      status: firstFailed === undefined ? 1 : 0,
      gas: Number(
        ops.reduce(
          (sum, { op }) => sum + op.callGasLimit + op.verificationGasLimit + op.preVerificationGas,
          0n
        )
      ),
      userOps: ops.map(({ encodedUserOp, index, signingHash, userOpHash }) => ({
        encodedUserOp,
        userOpHash,
        signingHash,
        bundler,
        aggrIndexes: [index],
        ...previews.get(index)
      })),
      error: firstFailed === undefined ? null : `operations[${firstFailed[0]}]: ${firstFailed[1].message}`,
      ...revertDataOf(firstFailed?.[1])
    }
  }).pipe(
    Effect.catchTag("Unprocessable", (failure) =>
      Effect.succeed({ status: 0, gas: 0, userOps: [], error: HandOut.textOf(failure) })
    ),
    Span.named("EstimateGas")
  )
