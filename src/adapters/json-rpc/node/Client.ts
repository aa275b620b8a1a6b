import * as Cache from "effect/Cache"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type {
  BlockTag,
  CallResult,
  ChainClient,
  ChainRpcError,
  LogFilter
} from "../../../application/ports/chain/ChainRpc.js"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import * as Transaction from "../../../domain/evm/Transaction.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import type { Batches } from "../transport/Batches.js"
import type { Outcome } from "../transport/JsonRpc.js"
import * as Refusal from "../transport/Refusal.js"
import * as Answers from "./Answers.js"
import * as MalformedLogs from "./MalformedLogs.js"
import * as NodeFees from "./NodeFees.js"
import * as Params from "./Params.js"
import * as Receipts from "./Receipts.js"
import * as RpcSchemas from "./RpcSchemas.js"

/**
 * Calls a node's methods through `Batches` and checks their results. `ChainRpc` makes one client per URL and author.
 *
 * Gotchas: a malformed log fails a reading only where it may matter; `MalformedLogs` decides that.
 */

/** Shares one reply among concurrent callers. Caches a success for the life of the client, never a failure. */
const share = <A, E>(ask: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  const timeToLive = (exit: Exit.Exit<A, E>) => (Exit.isSuccess(exit) ? Duration.infinity : Duration.zero)
  return Cache.get(Effect.runSync(Cache.makeWith(() => ask, { capacity: 1, timeToLive })), null)
}

/** Implements the port with the Ethereum JSON-RPC. */
export const make = (origin: string, batches: Batches): ChainClient => {
  const { decoderOf, malformed, optional, readable, reader, rejected } = Answers.make(origin, batches)

  const ethChainId = reader("eth_chainId", RpcSchemas.Quantity)
  const ethGetBlockByNumber = reader("eth_getBlockByNumber", RpcSchemas.MaybeBlock)
  const ethGetHeader = reader("eth_getBlockByNumber", RpcSchemas.MaybeHeader)
  const ethGetFullBlock = reader("eth_getBlockByNumber", RpcSchemas.MaybeFullBlock)
  const ethFeeHistory = optional("eth_feeHistory", RpcSchemas.FeeHistory)
  const ethMaxPriorityFeePerGas = optional("eth_maxPriorityFeePerGas", RpcSchemas.Quantity)
  const ethGasPrice = reader("eth_gasPrice", RpcSchemas.Quantity)
  const ethGetBalance = reader("eth_getBalance", RpcSchemas.Quantity)
  const ethGetCode = reader("eth_getCode", Hex.schema)
  const ethGetTransactionCount = reader("eth_getTransactionCount", RpcSchemas.Quantity)
  const ethSimulateV1 = optional("eth_simulateV1", RpcSchemas.Simulated)
  const ethGetTransactionReceipt = reader("eth_getTransactionReceipt", Schema.Unknown)
  const ethGetTransactionByHash = reader("eth_getTransactionByHash", RpcSchemas.MaybeTransaction)
  const ethHasTransaction = reader("eth_getTransactionByHash", Schema.Unknown)
  const ethGetLogs = reader("eth_getLogs", RpcSchemas.List)
  const readLogs = readable(RpcSchemas.LogAnswer)
  const readSimulatedLogs = readable(RpcSchemas.SimulatedLog)
  const readTransactions = readable(RpcSchemas.TransactionAnswer)
  const readReceiptLogs = readable(RpcSchemas.ReceiptLog)
  const decodeCall = decoderOf("eth_call", Hex.schema)
  const decodeGas = decoderOf("eth_estimateGas", RpcSchemas.GasUsed)
  const decodeHash = decoderOf("eth_sendRawTransaction", Hex.schema32)

  const fees = NodeFees.make({
    history: ethFeeHistory(Uint.toQuantity(BigInt(NodeFees.pastBlocks)), "latest", [
      NodeFees.rewardPercentile
    ]),
    suggestedTip: ethMaxPriorityFeePerGas(),
    gasPrice: ethGasPrice(),
    baseFee: Effect.map(ethGetBlockByNumber("latest", false), (block) =>
      block === null ? undefined : (block.baseFeePerGas ?? null)
    )
  })

  const nothingBeside: Receipts.BesideReceipt = { transaction: null, baseFeePerGas: null }

  /** Reads the transaction and its block's base fee when a receipt lacks its sender or price. */
  const besideOf = (
    transactionHash: Hex.Bytes32,
    { blockNumber, effectiveGasPrice, from }: Receipts.ReceiptAnswer
  ) =>
    blockNumber === null || (effectiveGasPrice !== null && from !== null)
      ? Effect.succeed(nothingBeside)
      : Effect.map(
          Effect.all(
            [
              ethGetTransactionByHash(transactionHash),
              ethGetBlockByNumber(Uint.toQuantity(blockNumber), false)
            ],
            { concurrency: "unbounded" }
          ),
          ([found, block]) => ({
            transaction: found?.hash === transactionHash && found.blockNumber === blockNumber ? found : null,
            baseFeePerGas: block?.number === blockNumber ? (block.baseFeePerGas ?? null) : null
          })
        )

  const receiptOf = Effect.fnUntraced(function* (
    txHash: Hex.Bytes32,
    answer: Receipts.ReceiptAnswer,
    reading: Parameters<ChainClient["receipt"]>[1]
  ) {
    const isLenient = reading === "lenient"
    const emitters = typeof reading === "object" ? reading.emitters : undefined
    const beside = yield* isLenient
      ? Effect.orElseSucceed(besideOf(txHash, answer), () => nothingBeside)
      : besideOf(txHash, answer)
    const { malformed: malformedLogs, values } = yield* readReceiptLogs(answer.logs ?? [], "logs")
    const { missing: left, ...receipt } = Receipts.toReceipt(txHash, answer, values, beside)
    // A malformed log of another contract decides nothing.
    const relevant = yield* EventLoop.map(malformedLogs, (one) =>
      isLenient || MalformedLogs.mayTellOfOps(one.value, emitters) ? [one] : []
    )
    const missing = [...left, ...relevant.flat().map(({ where }) => where)]
    const [first] = missing
    if (first === undefined) return receipt
    return isLenient
      ? { ...receipt, missing }
      : yield* malformed("eth_getTransactionReceipt", `is malformed at ${first}`)
  })

  const logsIn = Effect.fnUntraced(function* (
    list: ReadonlyArray<unknown>,
    filter: Pick<LogFilter, "address" | "topics">,
    reading?: "lenient" | "placed"
  ) {
    const { malformed: malformedLogs, values } = yield* readLogs(list)
    const found = RpcSchemas.toFoundLogs(values)
    const meant = yield* EventLoop.map(malformedLogs, ({ value, where }) =>
      MalformedLogs.mayMatch(value, filter)
        ? [{ where, log: MalformedLogs.readIncomplete(value, filter) }]
        : []
    )
    const matching = meant.flat()
    const shown = reading === undefined ? [] : matching.flatMap(({ log }) => (log === null ? [] : [log]))
    const all = [...found, ...shown]
    // A reply without a readable log counts as malformed.
    if (reading === "lenient" && (all.length > 0 || values.length > 0)) return all
    const ours = matching.find(
      ({ log }) => reading !== "placed" || log === null || !MalformedLogs.isPlain(log)
    )
    return ours === undefined ? all : yield* malformed("eth_getLogs", `is malformed at ${ours.where}`)
  })

  /** Rejects a block whose number differs from the requested one. */
  const isBlock = (tag: BlockTag) => (answer: { readonly number: bigint } | null) =>
    answer === null || typeof tag !== "bigint" || answer.number === tag
  const otherBlock = () => malformed("eth_getBlockByNumber", "is another block")

  /** Result of a call. A call that reverted has a result, too; a refused call fails. */
  const ranOf = <A extends CallResult>(
    outcome: Outcome,
    succeeded: (value: unknown) => Effect.Effect<A, ChainRpcError>,
    failed: (result: CallResult) => A
  ): Effect.Effect<A, ChainRpcError> => {
    if (outcome._tag === "result") return succeeded(outcome.value)
    const data = Refusal.revertData(outcome.error)
    return data === undefined
      ? rejected(outcome.error)
      : Effect.succeed(failed({ success: false, data, ...Refusal.gas(outcome.error) }))
  }

  const simulatedLogs = Effect.fnUntraced(function* (logs: ReadonlyArray<unknown>, index: number) {
    const { malformed: malformedLogs, values } = yield* readSimulatedLogs(logs, "calls", index, "logs")
    const lacking = malformedLogs.find(({ value }) => MalformedLogs.mayTellOfOps(value))
    return lacking === undefined
      ? values
      : yield* malformed("eth_simulateV1", `is malformed at ${lacking.where}`)
  })

  return {
    origin,
    chainId: share(ethChainId()),
    block: (tag) =>
      ethGetBlockByNumber(Params.toTag(tag), false).pipe(
        Effect.filterOrFail(isBlock(tag), otherBlock),
        Effect.map((answer) => (answer === null ? null : RpcSchemas.toBlock(answer)))
      ),
    header: (tag) => Effect.filterOrFail(ethGetHeader(Params.toTag(tag), false), isBlock(tag), otherBlock),
    fees,
    balance: (address) => ethGetBalance(address, "latest"),
    code: (address) => ethGetCode(address, "latest"),
    transactionCount: (address, tag) => ethGetTransactionCount(address, Params.toTag(tag)),
    transactionsIn: (block) =>
      Effect.flatMap(ethGetFullBlock(Params.toTag(block), true), (answer) =>
        answer === null
          ? Effect.succeed(null)
          : // Transactions that the chain itself creates lack fields of an EOA's transaction.
            Effect.map(readTransactions(RpcSchemas.transactionsOf(answer.transactions)), ({ values }) =>
              values.map(RpcSchemas.toTransaction)
            )
      ),
    call: (call, overrides, at = "latest") =>
      Effect.flatMap(batches.read("eth_call", Params.toParams(call, overrides, at)), (outcome) =>
        ranOf<CallResult>(
          outcome,
          (value) => Effect.map(decodeCall(value), (data) => ({ success: true, data })),
          (failed) => failed
        )
      ),
    estimateGas: (call) =>
      Effect.flatMap(batches.read("eth_estimateGas", [Params.toCall(call)]), (outcome) =>
        ranOf<CallResult & { readonly gas: bigint }>(
          outcome,
          (value) => Effect.map(decodeGas(value), (gas) => ({ success: true, data: Hex.empty, gas })),
          (failed) => ({ ...failed, gas: 0n })
        )
      ),
    simulate: (calls, { at, overrides, tracing } = {}) =>
      Effect.flatMap(
        ethSimulateV1(
          {
            blockStateCalls: [
              {
                calls: calls.map(Params.toCall),
                ...(overrides !== undefined && { stateOverrides: Params.toOverrides(overrides) })
              }
            ],
            validation: false,
            ...(tracing === true && { traceTransfers: true })
          },
          Params.toTag(at ?? "latest")
        ),
        ([block]) =>
          block.calls.length === calls.length
            ? Effect.forEach(block.calls, (call, index) =>
                Effect.map(simulatedLogs(call.logs ?? [], index), (logs) =>
                  RpcSchemas.toSimulatedCall(call, logs)
                )
              )
            : malformed("eth_simulateV1", "has another number of calls")
      ),
    sendRawTransaction: Effect.fnUntraced(function* (raw: Hex.Hex) {
      const outcome = yield* batches.once("eth_sendRawTransaction", [raw])
      if (outcome._tag === "error") return yield* rejected(outcome.error)
      if ((yield* decodeHash(outcome.value)) !== Transaction.hash(raw))
        return yield* malformed("eth_sendRawTransaction", "is the hash of another transaction")
    }),
    receipt: (txHash, reading) =>
      Effect.flatMap(ethGetTransactionReceipt(txHash), (value) => {
        const answer = Receipts.readReceipt(value)
        if (answer === null) return Effect.succeed(null)
        return reading === "lenient" || answer.transactionHash === null || answer.transactionHash === txHash
          ? receiptOf(txHash, answer, reading)
          : malformed("eth_getTransactionReceipt", "is of another transaction")
      }),
    knows: (txHash) => Effect.map(ethHasTransaction(txHash), (answer) => answer !== null),
    transaction: (txHash) =>
      ethGetTransactionByHash(txHash).pipe(
        Effect.filterOrFail(
          (answer) => answer === null || answer.hash === txHash,
          () => malformed("eth_getTransactionByHash", "is another transaction")
        ),
        Effect.map((answer) => (answer === null ? null : RpcSchemas.toTransaction(answer)))
      ),
    logs: (filter, reading) =>
      Effect.flatMap(ethGetLogs(Params.toFilter(filter)), (list) => logsIn(list, filter, reading)),
    logsOf: (blockHash, { address, topics }, reading) => {
      const filter = { topics, ...(address !== undefined && { address }) }
      return ethGetLogs({ blockHash, ...filter }).pipe(
        Effect.flatMap((list) => logsIn(list, filter, reading)),
        Effect.filterOrFail(
          (logs) => logs.every((log) => log.blockHash === blockHash),
          () => malformed("eth_getLogs", "is of another block")
        )
      )
    }
  }
}
