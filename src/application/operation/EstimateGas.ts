import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Caller } from "../Caller.js"
import type { Failure } from "../Failure.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { Bundler } from "../ports/Bundler.js"
import type { ChainRpc } from "../ports/ChainRpc.js"
import type { Journal } from "../ports/Journal.js"
import type { Networks } from "../ports/Networks.js"
import type { Signers, SystemSigners } from "../ports/Signers.js"
import * as Settings from "../Settings.js"
import { Operation } from "./Operation.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForOps
}).annotations({ identifier: "EstimateGasRequest" })
export type Request = typeof Request.Type

/** An op that is ready to be signed and sent to `/executeEncoded`. */
export const EstimatedOp = Schema.Struct({
  encodedUserOp: Schema.String,
  userOpHash: Schema.String,
  signingHash: Schema.String.annotations({
    description: "What to sign when the op shall be bound to its bundler."
  }),
  bundler: Schema.String.annotations({ description: "The only EOA that may submit it; zero: any." }),
  aggrIndexes: Schema.Array(Schema.Int).annotations({
    description: "Indexes of the request's operations that this op carries."
  })
}).annotations({ identifier: "EstimatedOp" })

export const Response = Schema.Struct({
  status: Schema.Int.annotations({ description: "0 failed, 1 success" }),
  gas: Schema.Int.annotations({ description: "Sum of the ops' gas limits, buffers included." }),
  userOps: Schema.Array(EstimatedOp),
  error: Schema.NullOr(Schema.String)
}).annotations({ identifier: "EstimateGasResponse" })
export type Response = typeof Response.Type

export declare const run: (
  caller: Caller,
  request: Request
) => Effect.Effect<
  Response,
  Failure,
  AbiStore | Bundler | ChainRpc | Journal | Networks | Signers | SystemSigners
>
