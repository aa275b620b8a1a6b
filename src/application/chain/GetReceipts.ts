import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Hex from "../../domain/evm/Hex.js"
import type { Caller } from "../Caller.js"
import * as Decoding from "../Decoding.js"
import * as Connection from "../engine/Connection.js"
import type { Failure } from "../Failure.js"
import { RpcUrl } from "../Fields.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type * as Port from "../ports/ChainRpc.js"
import type { Networks } from "../ports/Networks.js"
import { DecodedLog } from "../TransactionResult.js"

export const Request = Schema.Struct({
  txHashes: Schema.Array(Hex.schema32).annotations({
    description: "Hashes of transactions; one that is named twice is answered once."
  }),
  rpc: RpcUrl,
  useABI: Schema.optionalWith(
    Schema.Array(Schema.Unknown).annotations({
      description: "Events and errors for decoding, as JSON fragments or human-readable text."
    }),
    { exact: true }
  )
}).annotations({ identifier: "ReceiptRequest" })
export type Request = typeof Request.Type

export const Receipt = Schema.Struct({
  status: Schema.Int.annotations({ description: "0 failed, 1 success" }),
  txHash: Schema.String,
  gasUsed: Schema.Int,
  cumulativeGasUsed: Schema.Int.annotations({
    description: "Gas used in the block, up to this transaction."
  }),
  effectiveGasPrice: Schema.String.annotations({ description: "Wei, decimal." }),
  logs: Schema.Array(DecodedLog),
  error: Schema.NullOr(Schema.String).annotations({
    description:
      "Why a failed transaction failed: what its call says on the state of the block before. Null for a success, and where the node can not tell."
  })
}).annotations({ identifier: "Receipt" })
export type Receipt = typeof Receipt.Type

export const Response = Schema.Struct({
  requestStatus: Schema.Int.annotations({ description: "200 when all are mined, else 202" }),
  receipts: Schema.Array(Receipt).annotations({
    description: "Of the mined transactions, in request order."
  }),
  pending: Schema.Array(Schema.String).annotations({ description: "Hashes that wait to be mined." }),
  unknown: Schema.Array(Schema.String).annotations({ description: "Hashes that the node does not know." })
}).annotations({ identifier: "ReceiptResponse" })
export type Response = typeof Response.Type

const together = { concurrency: "unbounded" } as const

/** Why a transaction failed, from its call on the state of the block before; null when that does not tell. */
const reasonOf = (
  chain: Port.ChainClient,
  decoding: Decoding.Decoding,
  { blockNumber, gasUsed, txHash }: Port.Receipt
): Effect.Effect<string | null> =>
  Effect.gen(function* () {
    const transaction = yield* chain.transaction(txHash)
    if (transaction === null || blockNumber === 0n) return null
    const { data, from, gasLimit, to, value } = transaction
    const call = { from, data, value, gas: gasLimit, ...(to !== null && { to }) }
    const again = yield* chain.call(call, undefined, blockNumber - 1n)
    if (again.success) return null
    return again.data === Hex.empty && gasUsed === gasLimit
      ? "used all of its gas: out of gas, or an invalid instruction"
      : decoding.revert(again.data)
  }).pipe(Effect.orElseSucceed(() => null))

/** The receipts of mined transactions with decoded logs; the other hashes are told apart from failed ones. */
export const run = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure, AbiStore | Port.ChainRpc | Networks> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, request.useABI, "useABI")
    const { chain, trust } = yield* Connection.open(caller, request.rpc, "rpc")
    const hashes = Arr.dedupe(request.txHashes)
    const refused = Effect.mapError(Connection.refusal(trust, "rpc"))
    const found = yield* refused(Effect.forEach(hashes, (txHash) => chain.receipt(txHash), together))
    const mined = found.filter((receipt) => receipt !== null)
    const rest = hashes.filter((_, index) => found[index] === null)
    const [receipts, waiting] = yield* Effect.all(
      [
        Effect.forEach(
          mined,
          (receipt) =>
            Effect.map(
              receipt.success ? Effect.succeed(null) : reasonOf(chain, decoding, receipt),
              (error): Receipt => ({
                status: receipt.success ? 1 : 0,
                txHash: receipt.txHash,
                gasUsed: Number(receipt.gasUsed),
                cumulativeGasUsed: Number(receipt.cumulativeGasUsed),
                effectiveGasPrice: receipt.effectiveGasPrice.toString(),
                logs: receipt.logs.map(decoding.log),
                error
              })
            ),
          together
        ),
        refused(
          Effect.forEach(
            rest,
            (txHash) => Effect.map(chain.transaction(txHash), (known) => ({ txHash, known: known !== null })),
            together
          )
        )
      ],
      together
    )
    return {
      requestStatus: waiting.length === 0 ? 200 : 202,
      receipts,
      pending: waiting.filter(({ known }) => known).map(({ txHash }) => txHash),
      unknown: waiting.filter(({ known }) => !known).map(({ txHash }) => txHash)
    }
  }).pipe(Effect.withSpan("GetReceipts"))
