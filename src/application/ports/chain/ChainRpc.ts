import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { RawLog } from "../../../domain/evm/RawLog.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"

/**
 * A node could not be asked, or did not do what was asked.
 *
 * - `invalidUrl`: not an http(s) URL
 * - `forbidden`: an address that the service may not connect to
 * - `unreachable`: no connection, no answer in time, an HTTP error that is no outage, a redirect
 * - `unavailable`: it, or the gateway before it, says that it cannot answer now: HTTP 5xx and the JSON-RPC errors that say
 *   the same, a block that it has not got yet. With `rpcCode` where it said so in JSON-RPC
 * - `notAnRpc`: it answered with something that is not JSON-RPC, or too much of it
 * - `rateLimited`: HTTP 429 or its JSON-RPC equivalents
 * - `unsupported`: the node has no such method, or does not serve it; asking again is of no use
 * - `rejected`: any other JSON-RPC error object; `rpcCode` and `message` are the node's
 *
 * `message` never holds more of a URL than scheme and host: keys sit in paths.
 */
export class ChainRpcError extends Data.TaggedError("ChainRpcError")<{
  readonly reason:
    | "invalidUrl"
    | "forbidden"
    | "unreachable"
    | "unavailable"
    | "notAnRpc"
    | "rateLimited"
    | "unsupported"
    | "rejected"
  readonly origin: string
  readonly message: string
  readonly rpcCode?: number
  /** What the node asked to wait before it is asked again. */
  readonly retryAfterMillis?: number
}> {}

/** The node answered, and said no: asking again may be of no use. */
export const isAnswer = ({ reason }: Pick<ChainRpcError, "reason">): boolean =>
  reason === "rejected" || reason === "unsupported"

export type BlockTag = "latest" | "pending" | "safe" | "finalized" | bigint

export interface Block {
  readonly number: bigint
  readonly hash: Bytes32
  /** Unix seconds. */
  readonly timestamp: number
  readonly gasLimit: bigint
  /** Wei; null on chains without EIP-1559. */
  readonly baseFeePerGas: bigint | null
}

/** What names a block and the one that it stands on. */
export interface Header {
  readonly number: bigint
  readonly hash: Bytes32
  readonly parentHash: Bytes32
}

export interface NetworkFees {
  /** Base fee of the block after the latest one, wei; null on chains without EIP-1559. */
  readonly nextBaseFee: bigint | null
  /** Wei: what recent blocks and the node suggest as maxPriorityFeePerGas; without a base fee the whole gas price. */
  readonly tip: bigint
}

/** An account as `eth_call` shall see it. */
export interface StateOverride {
  readonly balance?: bigint
  readonly code?: Hex
  readonly stateDiff?: Readonly<Record<Bytes32, Bytes32>>
}

export interface Call {
  readonly from?: Address
  /** Absent: `data` is run as creation code and its result is the runtime code. */
  readonly to?: Address
  readonly data: Hex
  readonly value?: bigint
  readonly gas?: bigint
}

export interface CallResult {
  /** False: the call reverted, and `data` is the revert data. */
  readonly success: boolean
  readonly data: Hex
  /** The node says that the call failed for want of gas. Absent: it does not say so. */
  readonly outOfGas?: true
}

export interface SimulatedCall extends CallResult {
  readonly gasUsed: bigint
  readonly logs: ReadonlyArray<RawLog>
}

export interface Receipt {
  readonly txHash: Bytes32
  readonly success: boolean
  readonly blockNumber: bigint
  readonly blockHash: Bytes32
  readonly gasUsed: bigint
  readonly cumulativeGasUsed: bigint
  readonly effectiveGasPrice: bigint
  /** Wei that layer 1 took for the transaction's data beside that, on chains whose receipts tell it. */
  readonly l1Fee?: bigint
  readonly from: Address
  readonly logs: ReadonlyArray<RawLog>
  /** Members that the node left out, or that cannot be read, where it was asked for as told: their values say nothing. */
  readonly missing?: ReadonlyArray<string>
}

export interface LogFilter {
  readonly address?: ReadonlyArray<Address>
  /** By position; null matches anything, a list any of its members. */
  readonly topics: ReadonlyArray<null | Bytes32 | ReadonlyArray<Bytes32>>
  readonly fromBlock: BlockTag
  readonly toBlock: BlockTag
}

export interface FoundLog extends RawLog {
  readonly txHash: Bytes32
  readonly blockNumber: bigint
  readonly blockHash: Bytes32
  /** Members that the node left out, or that cannot be read, where it was asked for as told: their values say nothing. */
  readonly missing?: ReadonlyArray<string>
}

/** A transaction as the node knows it, mined or waiting. */
export interface KnownTransaction {
  readonly txHash: Bytes32
  readonly from: Address
  readonly nonce: bigint
  /** Null: it creates a contract. */
  readonly to: Address | null
  readonly data: Hex
  /** Wei. */
  readonly value: bigint
  readonly gasLimit: bigint
  /** Wei per gas unit: maxFeePerGas, or the gas price of a legacy transaction. */
  readonly maxFeePerGas: bigint
  /** Wei per gas unit: maxPriorityFeePerGas, or the gas price of a legacy transaction. */
  readonly maxPriorityFeePerGas: bigint
  /** Null while it waits. */
  readonly blockNumber: bigint | null
}

/**
 * One node. Calls that are made at the same moment (`Effect.all` with unbounded concurrency) leave together in
 * one JSON-RPC batch.
 */
export interface ChainClient {
  /** Scheme and host of the node: all of its URL that may be shown. */
  readonly origin: string
  /** `eth_chainId`; asked once per client. */
  readonly chainId: Effect.Effect<bigint, ChainRpcError>
  readonly block: (tag: BlockTag) => Effect.Effect<Block | null, ChainRpcError>
  /** Null when the node has no such block. */
  readonly header: (block: "latest" | bigint) => Effect.Effect<Header | null, ChainRpcError>
  readonly fees: Effect.Effect<NetworkFees, ChainRpcError>
  readonly balance: (address: Address) => Effect.Effect<bigint, ChainRpcError>
  readonly code: (address: Address) => Effect.Effect<Hex, ChainRpcError>
  readonly transactionCount: (address: Address, tag: BlockTag) => Effect.Effect<bigint, ChainRpcError>
  /** The transactions of a block, in order; null when the node has no such block. */
  readonly transactionsIn: (
    block: bigint
  ) => Effect.Effect<ReadonlyArray<KnownTransaction> | null, ChainRpcError>
  /** `eth_call`, at the latest block unless told otherwise. A revert is a result, not an error. */
  readonly call: (
    call: Call,
    overrides?: ReadonlyMap<Address, StateOverride>,
    at?: BlockTag
  ) => Effect.Effect<CallResult, ChainRpcError>
  /** `eth_estimateGas` on the latest block. A revert is a result, with gas 0. */
  readonly estimateGas: (call: Call) => Effect.Effect<CallResult & { readonly gas: bigint }, ChainRpcError>
  /**
   * `eth_simulateV1`: the calls one after another in one block on top of the latest. `unsupported` where the node
   * lacks it; such a node is not asked again for a while.
   */
  readonly simulate: (
    calls: ReadonlyArray<Call>
  ) => Effect.Effect<ReadonlyArray<SimulatedCall>, ChainRpcError>
  /**
   * `eth_sendRawTransaction`, sent exactly once: never repeated by the adapter, since only the caller knows what
   * a lost answer means.
   */
  readonly sendRawTransaction: (raw: Hex) => Effect.Effect<void, ChainRpcError>
  /**
   * Null while the transaction is not mined, or unknown. Of one that lacks what cannot be known otherwise nothing is believed,
   * unless it is asked for `asTold`: then `missing` names it. `emitters`: only logs of these contracts are decided by, and one of
   * another contract that cannot be read is left out; default: of all.
   */
  readonly receipt: (
    txHash: Bytes32,
    reading?: "asTold" | { readonly emitters: ReadonlySet<Address> }
  ) => Effect.Effect<Receipt | null, ChainRpcError>
  /** Null when the node knows it neither as mined nor as waiting. */
  readonly transaction: (txHash: Bytes32) => Effect.Effect<KnownTransaction | null, ChainRpcError>
  /** Whether the node knows the transaction, mined or waiting, whatever else it says of it. */
  readonly knows: (txHash: Bytes32) => Effect.Effect<boolean, ChainRpcError>
  /**
   * One that cannot be read is left out where it is another than was asked for. Where it may be one of them, all is an error:
   * what is not among them is not on the chain. `asTold`: those that are of them for certain are there with what can be
   * read, `missing` names the rest; an answer of which nothing can be read is an error. `placed`: the same, but one that may
   * be of them and does not say its contract, its topics or its place in the chain is an error.
   */
  readonly logs: (
    filter: LogFilter,
    reading?: "asTold" | "placed"
  ) => Effect.Effect<ReadonlyArray<FoundLog>, ChainRpcError>
  /** The logs of the block of this hash: of that block, or an error where the node does not have it. */
  readonly logsOf: (
    blockHash: Bytes32,
    filter: Pick<LogFilter, "address" | "topics">,
    reading?: "placed"
  ) => Effect.Effect<ReadonlyArray<FoundLog>, ChainRpcError>
}

/** Who named a URL: an account in a request, or the operator in the configuration. */
export type NamedBy = { readonly account: AccountId } | "operator"

/** Connects to the node of a URL. */
export class ChainRpc extends Context.Service<
  ChainRpc,
  {
    /**
     * The client of a URL, made without any traffic. An account's URL is held to the egress rules of the profile; the
     * operator's own is trusted. An account shares its clients, all that they cache and their connections, with nobody.
     */
    readonly connect: (url: string, by: NamedBy) => Effect.Effect<ChainClient, ChainRpcError>
  }
>()("castellan/ChainRpc") {}
