import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Hex from "../../domain/evm/Hex.js"
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
import { Custody, UnixSeconds } from "./Operation.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const EncodedOperation = Schema.Struct({
  encodedUserOp: Hex.schema,
  userOpHash: Hex.schema32,
  walletCustody: Custody,
  validAfter: optional(UnixSeconds),
  validUnitl: optional(UnixSeconds),
  signature: optional(Hex.schema).annotations({
    description: "r, s and v over userOpHash or signingHash. Absent: settings.signer signs."
  })
}).annotations({ identifier: "EncodedOperation" })
export type EncodedOperation = typeof EncodedOperation.Type

export const Request = Schema.Struct({
  operations: Schema.Array(EncodedOperation),
  settings: Settings.ForOps
}).annotations({ identifier: "ExecuteEncodedRequest" })
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
