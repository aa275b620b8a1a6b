import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Hex from "../../domain/evm/Hex.js"
import type { Caller } from "../Caller.js"
import * as Decoding from "../Decoding.js"
import * as Connection from "../engine/Connection.js"
import type { Failure } from "../Failure.js"
import { RpcUrl } from "../Fields.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { ChainRpc } from "../ports/ChainRpc.js"
import type { Networks } from "../ports/Networks.js"
import { DecodedLog } from "../TransactionResult.js"

export const Request = Schema.Struct({
  txHashes: Schema.Array(Hex.schema32),
  rpc: RpcUrl,
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

/** The receipts of mined transactions with decoded logs; the other hashes are told apart from failed ones. */
export const run = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure, AbiStore | ChainRpc | Networks> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, request.useABI, "useABI")
    const { chain, trust } = yield* Connection.open(caller, request.rpc, "rpc")
    const found = yield* Effect.mapError(
      Effect.forEach(
        request.txHashes,
        (txHash) =>
          Effect.all(
            {
              txHash: Effect.succeed(txHash),
              receipt: chain.receipt(txHash),
              known: Effect.map(chain.transaction(txHash), (transaction) => transaction !== null)
            },
            { concurrency: "unbounded" }
          ),
        { concurrency: "unbounded" }
      ),
      Connection.refusal(trust, "rpc")
    )
    const waiting = found.filter(({ receipt }) => receipt === null)
    return {
      requestStatus: waiting.length === 0 ? 200 : 202,
      receipts: found.flatMap(({ receipt }) =>
        receipt === null
          ? []
          : [
              {
                status: receipt.success ? 1 : 0,
                txHash: receipt.txHash,
                gasUsed: Number(receipt.gasUsed),
                cumulativeGasUsed: Number(receipt.cumulativeGasUsed),
                effectiveGasPrice: receipt.effectiveGasPrice.toString(),
                logs: receipt.logs.map(decoding.log)
              }
            ]
      ),
      pending: waiting.filter(({ known }) => known).map(({ txHash }) => txHash),
      unknown: waiting.filter(({ known }) => !known).map(({ txHash }) => txHash)
    }
  }).pipe(Effect.withSpan("GetReceipts"))
