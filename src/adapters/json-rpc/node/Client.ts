import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type {
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
import * as Refusal from "../transport/Refusal.js"
import * as Answers from "./Answers.js"
import * as NodeFees from "./NodeFees.js"
import * as OddLogs from "./OddLogs.js"
import * as Params from "./Params.js"
import * as Receipts from "./Receipts.js"
import * as RpcSchemas from "./RpcSchemas.js"

/** Concurrent askers get one answer; a good one is kept for ever, a bad one not at all. */
const shared = <A, E>(ask: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  let asked: Fiber.Fiber<A, E> | undefined
  const forget = Effect.sync(() => {
    asked = undefined
  })
  // In a fiber of its own: the first asker may be interrupted while others wait.
  const begin = Effect.map(Effect.forkDetach(Effect.tapCause(ask, () => forget)), (fiber) => {
    asked = fiber
    return fiber
  })
  return Effect.flatMap(
    Effect.suspend(() => (asked === undefined ? begin : Effect.succeed(asked))),
    Fiber.join
  )
}

/** The methods of the port in terms of the Ethereum JSON-RPC. */
export const make = (origin: string, batches: Batches): ChainClient => {
  const { decoder, malformed, optional, readable, reader, rejected } = Answers.make(origin, batches)

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
  const decodeCall = decoder("eth_call", Hex.schema)
  const decodeGas = decoder("eth_estimateGas", RpcSchemas.GasUsed)
  const decodeHash = decoder("eth_sendRawTransaction", Hex.schema32)

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

  /** The transaction of a receipt that leaves out what it tells as well, and the base fee of its block. */
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

  const receiptOf = (
    txHash: Hex.Bytes32,
    answer: Receipts.ReceiptAnswer,
    reading: Parameters<ChainClient["receipt"]>[1]
  ) =>
    Effect.gen(function* () {
      const asTold = reading === "asTold"
      const emitters = typeof reading === "object" ? reading.emitters : undefined
      const beside = yield* asTold
        ? Effect.orElseSucceed(besideOf(txHash, answer), () => nothingBeside)
        : besideOf(txHash, answer)
      const { odd, values } = yield* readReceiptLogs(answer.logs ?? [], "logs")
      const { missing: left, ...receipt } = Receipts.toReceipt(txHash, answer, values, beside)
      // Of others' logs nothing is decided.
      const telling = yield* EventLoop.map(odd, (one) =>
        asTold || OddLogs.mayTellOfOps(one.value, emitters) ? [one] : []
      )
      const missing = [...left, ...telling.flat().map(({ where }) => where)]
      const [first] = missing
      if (first === undefined) return receipt
      return asTold
        ? { ...receipt, missing }
        : yield* malformed("eth_getTransactionReceipt", `is malformed at ${first}`)
    })

  const logsIn = (
    list: ReadonlyArray<unknown>,
    filter: Pick<LogFilter, "address" | "topics">,
    reading?: "asTold" | "placed"
  ) =>
    Effect.gen(function* () {
      const { odd, values } = yield* readLogs(list)
      const found = RpcSchemas.toFoundLogs(values)
      const meant = yield* EventLoop.map(odd, ({ value, where }) =>
        OddLogs.mayMatch(value, filter) ? [{ where, log: OddLogs.asTold(value, filter) }] : []
      )
      const told = meant.flat()
      const shown = reading === undefined ? [] : told.flatMap(({ log }) => (log === null ? [] : [log]))
      const all = [...found, ...shown]
      // An answer of which nothing can be read is none.
      if (reading === "asTold" && (all.length > 0 || values.length > 0)) return all
      const ours = told.find(({ log }) => reading !== "placed" || log === null || !OddLogs.isPlain(log))
      return ours === undefined ? all : yield* malformed("eth_getLogs", `is malformed at ${ours.where}`)
    })

  return {
    origin,
    chainId: shared(ethChainId()),
    block: (tag) =>
      Effect.flatMap(ethGetBlockByNumber(Params.toTag(tag), false), (answer) =>
        answer !== null && typeof tag === "bigint" && answer.number !== tag
          ? Effect.fail(malformed("eth_getBlockByNumber", "is another block"))
          : Effect.succeed(answer === null ? null : RpcSchemas.toBlock(answer))
      ),
    header: (block) =>
      Effect.flatMap(ethGetHeader(Params.toTag(block), false), (answer) =>
        answer !== null && typeof block === "bigint" && answer.number !== block
          ? Effect.fail(malformed("eth_getBlockByNumber", "is another block"))
          : Effect.succeed(answer)
      ),
    fees,
    balance: (address) => ethGetBalance(address, "latest"),
    code: (address) => ethGetCode(address, "latest"),
    transactionCount: (address, tag) => ethGetTransactionCount(address, Params.toTag(tag)),
    transactionsIn: (block) =>
      Effect.flatMap(ethGetFullBlock(Params.toTag(block), true), (answer) =>
        answer === null
          ? Effect.succeed(null)
          : // Those of kinds that only the chain itself makes lack what a transaction of an EOA has.
            Effect.map(readTransactions(RpcSchemas.transactionsOf(answer.transactions)), ({ values }) =>
              values.map(RpcSchemas.toTransaction)
            )
      ),
    call: (call, overrides, at = "latest") =>
      Effect.flatMap(
        batches.read(
          "eth_call",
          typeof call === "function"
            ? () => Params.toParams(call(), overrides, at)
            : Params.toParams(call, overrides, at)
        ),
        (outcome): Effect.Effect<CallResult, ChainRpcError> => {
          if (outcome._tag === "result")
            return Effect.map(decodeCall(outcome.value), (data) => ({ success: true, data }))
          const data = Refusal.revertData(outcome.error)
          return data === undefined
            ? rejected(outcome.error)
            : Effect.succeed({ success: false, data, ...Refusal.gas(outcome.error) })
        }
      ),
    estimateGas: (call) =>
      Effect.flatMap(
        batches.read("eth_estimateGas", [Params.toCall(call)]),
        (outcome): Effect.Effect<CallResult & { readonly gas: bigint }, ChainRpcError> => {
          if (outcome._tag === "result")
            return Effect.map(decodeGas(outcome.value), (gas) => ({ success: true, data: Hex.empty, gas }))
          const data = Refusal.revertData(outcome.error)
          return data === undefined
            ? rejected(outcome.error)
            : Effect.succeed({ success: false, data, gas: 0n, ...Refusal.gas(outcome.error) })
        }
      ),
    simulate: (calls) =>
      Effect.flatMap(
        ethSimulateV1(
          { blockStateCalls: [{ calls: calls.map(Params.toCall) }], validation: false },
          "latest"
        ),
        ([block]) =>
          block.calls.length === calls.length
            ? Effect.forEach(block.calls, (call, index) =>
                Effect.flatMap(
                  readSimulatedLogs(call.logs ?? [], "calls", index, "logs"),
                  ({ odd, values }) => {
                    const lacking = odd.find(({ value }) => OddLogs.mayTellOfOps(value))
                    return lacking === undefined
                      ? Effect.succeed(RpcSchemas.toSimulatedCall(call, values))
                      : Effect.fail(malformed("eth_simulateV1", `is malformed at ${lacking.where}`))
                  }
                )
              )
            : Effect.fail(malformed("eth_simulateV1", "has another number of calls"))
      ),
    sendRawTransaction: (raw) =>
      Effect.flatMap(batches.once("eth_sendRawTransaction", [raw]), (outcome) =>
        outcome._tag === "error"
          ? rejected(outcome.error)
          : Effect.flatMap(decodeHash(outcome.value), (hash) =>
              hash === Transaction.hash(raw)
                ? Effect.void
                : Effect.fail(malformed("eth_sendRawTransaction", "is the hash of another transaction"))
            )
      ),
    receipt: (txHash, reading) =>
      Effect.flatMap(ethGetTransactionReceipt(txHash), (value) => {
        const answer = Receipts.readReceipt(value)
        if (answer === null) return Effect.succeed(null)
        return reading === "asTold" || answer.transactionHash === null || answer.transactionHash === txHash
          ? receiptOf(txHash, answer, reading)
          : Effect.fail(malformed("eth_getTransactionReceipt", "is of another transaction"))
      }),
    knows: (txHash) => Effect.map(ethHasTransaction(txHash), (answer) => answer !== null),
    transaction: (txHash) =>
      Effect.flatMap(ethGetTransactionByHash(txHash), (answer) =>
        answer === null || answer.hash === txHash
          ? Effect.succeed(answer === null ? null : RpcSchemas.toTransaction(answer))
          : Effect.fail(malformed("eth_getTransactionByHash", "is another transaction"))
      ),
    logs: (filter, reading) =>
      Effect.flatMap(ethGetLogs(Params.toFilter(filter)), (list) => logsIn(list, filter, reading)),
    logsOf: (blockHash, filter, reading) =>
      Effect.flatMap(
        Effect.flatMap(
          ethGetLogs({
            blockHash,
            topics: filter.topics,
            ...(filter.address !== undefined && { address: filter.address })
          }),
          (list) => logsIn(list, filter, reading)
        ),
        (logs) =>
          logs.every((log) => log.blockHash === blockHash)
            ? Effect.succeed(logs)
            : Effect.fail(malformed("eth_getLogs", "is of another block"))
      )
  }
}
