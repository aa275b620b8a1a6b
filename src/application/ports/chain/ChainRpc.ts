import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { RawLog } from "../../../domain/evm/RawLog.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"

/**
 * A node could not be reached, or did not do the call.
 *
 * - `invalidUrl`: not an http(s) URL
 * - `forbidden`: an address that the service may not connect to
 * - `unreachable`: no connection, no answer in time, a redirect, an HTTP error other than an outage
 * - `unavailable`: the node or its gateway cannot answer now: HTTP 5xx, JSON-RPC errors with that meaning, a block that
 *   the node does not have yet. `rpcCode` is set where the node said so in JSON-RPC
 * - `notAnRpc`: the answer is not JSON-RPC, or too long
 * - `rateLimited`: HTTP 429 or its JSON-RPC equivalents
 * - `unsupported`: the node lacks the method or does not serve it; a retry does not help
 * - `rejected`: any other JSON-RPC error object; `rpcCode` and `message` are the node's
 *
 * `message` holds of a URL at most scheme and host: paths may hold keys.
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
  /** Pause that the node requests before the next call. */
  readonly retryAfterMillis?: number
}> {}

/**
 * The node answered with a refusal; a retry may not help.
 *
 * @example ChainRpc.isAnswer({ reason: "rejected" })
 * // true
 */
export const isAnswer = ({ reason }: Pick<ChainRpcError, "reason">): boolean =>
  reason === "rejected" || reason === "unsupported"

/** A block by its tag, or by its number. */
export type BlockTag = "latest" | "pending" | "safe" | "finalized" | bigint

/** A block as far as the service reads it. `timestamp` in Unix seconds, fees in wei. */
export interface Block {
  readonly number: bigint
  readonly hash: Bytes32
  /** Unix seconds. */
  readonly timestamp: number
  readonly gasLimit: bigint
  /** Wei; null on chains without EIP-1559. */
  readonly baseFeePerGas: bigint | null
}

/** Identity of a block and of its parent. */
export interface Header {
  readonly number: bigint
  readonly hash: Bytes32
  readonly parentHash: Bytes32
}

/** Fees of the next block in wei. `nextBaseFee` is null on a chain without EIP-1559. */
export interface NetworkFees {
  /** Base fee of the block after the latest one, wei; null on chains without EIP-1559. */
  readonly nextBaseFee: bigint | null
  /** Wei: maxPriorityFeePerGas that recent blocks and the node suggest; without a base fee the whole gas price. */
  readonly tip: bigint
}

/** Overrides of an account's state for `eth_call`. */
export interface StateOverride {
  readonly balance?: bigint
  readonly code?: Hex
  readonly stateDiff?: Readonly<Record<Bytes32, Bytes32>>
}

/** A call for `eth_call`. `value` in wei. */
export interface Call {
  readonly from?: Address
  /** Absent: the node runs `data` as creation code and returns the runtime code. */
  readonly to?: Address
  readonly data: Hex
  readonly value?: bigint
  readonly gas?: bigint
}

/** Outcome of a call: its return data, or its revert data. */
export interface CallResult {
  /** False: the call reverted, and `data` is the revert data. */
  readonly success: boolean
  readonly data: Hex
  /** The node says that the call ran out of gas. Absent: it does not say so. */
  readonly outOfGas?: true
}

/** One call of `eth_simulateV1`. */
export interface SimulatedCall extends CallResult {
  readonly gasUsed: bigint
  readonly logs: ReadonlyArray<RawLog>
}

/** A transaction's receipt. Gas in units of gas, `effectiveGasPrice` in wei. */
export interface Receipt {
  readonly txHash: Bytes32
  readonly success: boolean
  readonly blockNumber: bigint
  readonly blockHash: Bytes32
  readonly gasUsed: bigint
  readonly cumulativeGasUsed: bigint
  readonly effectiveGasPrice: bigint
  /** Wei that layer 1 charged in addition for the transaction's data, on chains whose receipts include it. */
  readonly l1Fee?: bigint
  readonly from: Address
  readonly logs: ReadonlyArray<RawLog>
  /** With `lenient`: members that the node omitted or that cannot be read; their values here mean nothing. */
  readonly missing?: ReadonlyArray<string>
}

/** Filter of `eth_getLogs`; both ends of the range are included. */
export interface LogFilter {
  readonly address?: ReadonlyArray<Address>
  /** By position; null matches anything, a list any of its members. */
  readonly topics: ReadonlyArray<null | Bytes32 | ReadonlyArray<Bytes32>>
  readonly fromBlock: BlockTag
  readonly toBlock: BlockTag
}

/** A log with its place in the chain. */
export interface FoundLog extends RawLog {
  readonly txHash: Bytes32
  readonly blockNumber: bigint
  readonly blockHash: Bytes32
  /**
   * With `lenient` or `placed`: members that the node omitted or that cannot be read; their values here mean nothing.
   */
  readonly missing?: ReadonlyArray<string>
}

/** A transaction as the node knows it, mined or pending. */
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
  /** Null while pending. */
  readonly blockNumber: bigint | null
}

/**
 * One node. Calls made at the same moment (`Effect.all` with unbounded concurrency) leave together in one JSON-RPC
 * batch.
 */
export interface ChainClient {
  /** Scheme and host of the node, the only parts of its URL that may be shown. */
  readonly origin: string
  /** `eth_chainId`; queried once per client. */
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
  /** `eth_call`, at the latest block by default. A revert is a result, not an error. */
  readonly call: (
    call: Call,
    overrides?: ReadonlyMap<Address, StateOverride>,
    at?: BlockTag
  ) => Effect.Effect<CallResult, ChainRpcError>
  /** `eth_estimateGas` on the latest block. A revert is a result, with gas 0. */
  readonly estimateGas: (call: Call) => Effect.Effect<CallResult & { readonly gas: bigint }, ChainRpcError>
  /**
   * `eth_simulateV1`: runs the calls in order in one block on top of the latest, or of `at`. `unsupported` where the
   * node lacks it; such a node is not queried again for a while. With `tracing`, transfers of the chain's coin are logs
   * of `Token.native`.
   */
  readonly simulate: (
    calls: ReadonlyArray<Call>,
    options?: {
      readonly at?: bigint
      readonly overrides?: ReadonlyMap<Address, StateOverride>
      readonly tracing?: boolean
    }
  ) => Effect.Effect<ReadonlyArray<SimulatedCall>, ChainRpcError>
  /**
   * `eth_sendRawTransaction`, sent exactly once. The adapter never repeats it, since only the caller knows how to treat
   * a lost answer.
   */
  readonly sendRawTransaction: (raw: Hex) => Effect.Effect<void, ChainRpcError>
  /**
   * Null while the transaction is pending or unknown. A receipt that lacks a member which cannot be known otherwise is
   * an error, except with `lenient`, where `missing` names the member. With `emitters`, decisions rest only on logs of
   * these contracts, and an unreadable log of another contract is left out. Default: all contracts.
   */
  readonly receipt: (
    txHash: Bytes32,
    reading?: "lenient" | { readonly emitters: ReadonlySet<Address> }
  ) => Effect.Effect<Receipt | null, ChainRpcError>
  /** Null when the node knows it neither as mined nor as pending. */
  readonly transaction: (txHash: Bytes32) => Effect.Effect<KnownTransaction | null, ChainRpcError>
  /** Whether the node knows the transaction, mined or pending, whatever else its answer holds. */
  readonly knows: (txHash: Bytes32) => Effect.Effect<boolean, ChainRpcError>
  /**
   * A log that is unreadable is left out when it certainly does not match the filter. When it may match, the whole call
   * fails, because callers take an absent log as not on the chain.
   * - `lenient`: returns the certain matches with their readable members, and `missing` names the others; an answer
   *   without any readable member is an error
   * - `placed`: as `lenient`, but a possible match without contract, topics or place in the chain is an error
   */
  readonly logs: (
    filter: LogFilter,
    reading?: "lenient" | "placed"
  ) => Effect.Effect<ReadonlyArray<FoundLog>, ChainRpcError>
  /** The logs of the block with this hash; an error where the node does not have that block. */
  readonly logsOf: (
    blockHash: Bytes32,
    filter: Pick<LogFilter, "address" | "topics">,
    reading?: "placed"
  ) => Effect.Effect<ReadonlyArray<FoundLog>, ChainRpcError>
}

/** The author of a URL: an account in a request, or the operator in the configuration. */
export type NamedBy = { readonly account: AccountId } | "operator"

/** Connects to a URL's node. */
export class ChainRpc extends Context.Service<
  ChainRpc,
  {
    /**
     * Returns the client of a URL, without any traffic. An account's URL is held to the egress rules of the profile;
     * the operator's own is trusted. An account never shares its clients, their caches or their connections.
     */
    readonly connect: (url: string, by: NamedBy) => Effect.Effect<ChainClient, ChainRpcError>
  }
>()("castellan/ChainRpc") {}
