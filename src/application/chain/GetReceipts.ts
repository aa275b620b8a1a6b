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
import { Journal, type TransactionRecord } from "../ports/Journal.js"
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
  }),
  requestedHash: Schema.optionalWith(
    Schema.String.annotations({
      description:
        "The hash that was asked for, when the service replaced that transaction by this one, at a higher price under the same nonce."
    }),
    { exact: true }
  )
}).annotations({ identifier: "Receipt" })
export type Receipt = typeof Receipt.Type

export const Response = Schema.Struct({
  requestStatus: Schema.Int.annotations({ description: "200 when all are mined, else 202" }),
  receipts: Schema.Array(Receipt).annotations({
    description: "Of the mined transactions, in request order."
  }),
  pending: Schema.Array(Schema.String).annotations({
    description: "Hashes that wait to be mined, themselves or their replacement by the service."
  }),
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

/** Most hashes that are looked up in the journal at once. */
const lookups = { concurrency: 16 } as const

/** What became of a hash. */
interface Found {
  readonly txHash: Hex.Bytes32
  /** Of the transaction itself, or of the one that replaced it. */
  readonly receipt: Port.Receipt | null
  readonly waiting: boolean
}

/** A hash without a receipt: the transaction that replaced it, or whether it is still waited for. */
const lookFurther = (
  chain: Port.ChainClient,
  txHash: Hex.Bytes32,
  record: TransactionRecord | null
): Effect.Effect<Found, Port.ChainRpcError> =>
  Effect.gen(function* () {
    const others = (record?.versions ?? []).filter((version) => version.txHash !== txHash)
    const [known, receipts] = yield* Effect.all(
      [
        chain.transaction(txHash),
        Effect.forEach(others, (version) => chain.receipt(version.txHash), together)
      ],
      together
    )
    const receipt = receipts.find((one) => one !== null) ?? null
    const underWay = record?.state === "signed" || record?.state === "mined"
    return { txHash, receipt, waiting: known !== null || underWay }
  })

/**
 * The receipts of mined transactions with decoded logs; the other hashes are told apart from failed ones. A hash that
 * the service itself has replaced, for this account, leads to the transaction that was mined in its place.
 */
export const run = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure, AbiStore | Port.ChainRpc | Journal | Networks> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, request.useABI, "useABI")
    const { chain, profile, trust } = yield* Connection.open(caller, request.rpc, "rpc")
    const journal = yield* Journal
    const hashes = Arr.dedupe(request.txHashes)
    const refused = Effect.mapError(Connection.refusal(trust, "rpc"))
    const direct = yield* refused(
      Effect.forEach(
        hashes,
        (txHash) => Effect.map(chain.receipt(txHash), (receipt) => ({ txHash, receipt, waiting: false })),
        together
      )
    )
    const records = new Map(
      yield* Effect.forEach(
        direct.filter(({ receipt }) => receipt === null),
        ({ txHash }) =>
          Effect.map(
            Effect.orDie(journal.findTransaction(caller.principal.accountId, profile.chainId, txHash)),
            (record) => [txHash, record] as const
          ),
        lookups
      )
    )
    const found = yield* refused(
      Effect.forEach(
        direct,
        (one) =>
          one.receipt === null
            ? lookFurther(chain, one.txHash, records.get(one.txHash) ?? null)
            : Effect.succeed(one),
        together
      )
    )
    const receipts = yield* Effect.forEach(
      found.flatMap(({ receipt, txHash }) => (receipt === null ? [] : [{ receipt, txHash }])),
      ({ receipt, txHash }) =>
        Effect.map(
          receipt.success ? Effect.succeed(null) : reasonOf(chain, decoding, receipt),
          (error): Receipt => ({
            status: receipt.success ? 1 : 0,
            txHash: receipt.txHash,
            gasUsed: Number(receipt.gasUsed),
            cumulativeGasUsed: Number(receipt.cumulativeGasUsed),
            effectiveGasPrice: receipt.effectiveGasPrice.toString(),
            logs: receipt.logs.map(decoding.log),
            error,
            ...(receipt.txHash !== txHash && { requestedHash: txHash })
          })
        ),
      together
    )
    const rest = found.filter(({ receipt }) => receipt === null)
    return {
      requestStatus: rest.length === 0 ? 200 : 202,
      receipts,
      pending: rest.filter(({ waiting }) => waiting).map(({ txHash }) => txHash),
      unknown: rest.filter(({ waiting }) => !waiting).map(({ txHash }) => txHash)
    }
  }).pipe(Effect.withSpan("GetReceipts"))
