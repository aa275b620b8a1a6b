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
import { Executed } from "../TransactionResult.js"
import { Operation } from "./Operation.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForSubmission
}).annotations({ identifier: "ExecuteRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

export declare const run: (
  caller: Caller,
  request: Request
) => Effect.Effect<
  Response,
  Failure,
  AbiStore | Bundler | ChainRpc | Journal | Networks | Signers | SystemSigners
>
