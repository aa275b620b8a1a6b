import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Hex from "../../domain/evm/Hex.js"
import type { Caller } from "../Caller.js"
import type { Failure } from "../Failure.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { ChainRpc } from "../ports/ChainRpc.js"
import type { Networks } from "../ports/Networks.js"
import { DecodedLog } from "../TransactionResult.js"

export const Request = Schema.Struct({
  txHashes: Schema.Array(Hex.schema32),
  rpc: Schema.String,
  useABI: Schema.optionalWith(Schema.Array(Schema.Unknown), { exact: true })
}).annotations({ identifier: "ReceiptRequest" })
export type Request = typeof Request.Type

export const Receipt = Schema.Struct({
  status: Schema.Int.annotations({ description: "0 failed, 1 success" }),
  txHash: Schema.String,
  gasUsed: Schema.Int,
  cumulativeGasUsed: Schema.Int,
  effectiveGasPrice: Schema.String,
  logs: Schema.Array(DecodedLog)
}).annotations({ identifier: "Receipt" })

export const Response = Schema.Struct({
  requestStatus: Schema.Int.annotations({ description: "200 when all are mined, else 202" }),
  receipts: Schema.Array(Receipt),
  pending: Schema.Array(Schema.String),
  unknown: Schema.Array(Schema.String)
}).annotations({ identifier: "ReceiptResponse" })
export type Response = typeof Response.Type

export declare const run: (
  caller: Caller,
  request: Request
) => Effect.Effect<Response, Failure, AbiStore | ChainRpc | Networks>
