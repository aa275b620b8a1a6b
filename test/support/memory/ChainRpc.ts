import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import {
  type Block,
  type Call,
  type ChainClient,
  ChainRpc,
  ChainRpcError,
  type FoundLog,
  type LogFilter,
  type NamedBy,
  type NetworkFees,
  type SimulatedCall,
  type StateOverride
} from "../../../src/application/ports/chain/ChainRpc.js"
import type { RawLog } from "../../../src/domain/evm/RawLog.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import type { Address } from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { ChainState, type Execution } from "./ChainState.js"

export type { Execution } from "./ChainState.js"

/**
 * The chain's code: executes calls and transactions. It may read and write its node. `block` is the number of the block
 * whose state it uses: the latest, or for calls the requested one.
 */
export type Execute = (
  call: Call,
  node: Node,
  overrides: ReadonlyMap<Address, StateOverride>,
  block: bigint
) => Effect.Effect<Execution>

/** Succeeds, returns nothing and costs a transfer's gas. */
export const nothing: Execute = () =>
  Effect.succeed({ success: true, data: Hex.empty, gasUsed: 21_000n, logs: [] })

export interface Options {
  readonly chainId: bigint
  /** Unix seconds of block 0. Each later block adds one second. */
  readonly genesis?: number
  readonly blockGasLimit?: bigint
  /** Base fee of every block, and the node's suggested tip. */
  readonly fees?: NetworkFees
  readonly execute?: Execute
  /** Wei. */
  readonly balances?: ReadonlyMap<Address, bigint>
  readonly codes?: ReadonlyMap<Address, Hex.Hex>
}

/**
 * A chain without an EVM, mined by one node: each transaction immediately gets a block. Past balances are kept; code and
 * nonces exist only in their current state.
 */
export interface Node {
  readonly chainId: bigint
  readonly setBalance: (address: Address, wei: bigint) => Effect.Effect<void>
  readonly setCode: (address: Address, code: Hex.Hex) => Effect.Effect<void>
  /** Adds an empty block. */
  readonly mine: Effect.Effect<Block>
  /** Makes every call of the port fail with this reason; null: no longer. */
  readonly breakDown: (reason: ChainRpcError["reason"] | null) => Effect.Effect<void>
  /** The mined transactions, oldest first. */
  readonly mined: Effect.Effect<ReadonlyArray<Transaction.Signed>>
  /** The node under a URL with this origin. */
  readonly client: (origin: string) => ChainClient
}

const defaultFees: NetworkFees = { nextBaseFee: 1_000_000_000n, tip: 1_000_000_000n }

const matches = (filter: LogFilter, log: RawLog): boolean =>
  (filter.address === undefined || filter.address.includes(log.address)) &&
  filter.topics.every((wanted, place) => {
    const topic = log.topics[place]
    if (wanted === null) return true
    return topic !== undefined && (typeof wanted === "string" ? wanted === topic : wanted.includes(topic))
  })

interface Parts {
  readonly chainId: bigint
  readonly fees: NetworkFees
  readonly state: ChainState
  /** Runs a call on a block's state. */
  readonly run: (
    call: Call,
    block: bigint,
    overrides?: ReadonlyMap<Address, StateOverride>
  ) => Effect.Effect<Execution>
  /** Runs transactions one after another, however long each takes. */
  readonly miner: Semaphore.Semaphore
  /** Reason why all calls fail; null: none. */
  readonly broken: () => ChainRpcError["reason"] | null
}

/** Refusal of a raw transaction, checked in the order of nodes; null: accepted. */
const objection = (signed: Transaction.Signed, { chainId, fees, state }: Parts): string | null => {
  const { from, hash, transaction } = signed
  const { gasLimit, legacy, maxFeePerGas, nonce, value } = transaction
  if (transaction.chainId !== chainId) return "invalid chain id for signer"
  if (state.isKnown(hash)) return "already known"
  if (nonce < state.nonceOf(from)) return "nonce too low"
  if (!legacy && fees.nextBaseFee === null) return "transaction type not supported"
  if (maxFeePerGas < (fees.nextBaseFee ?? 0n)) return "max fee per gas less than block base fee"
  if (state.balanceOf(from) < gasLimit * maxFeePerGas + value) return insufficientFunds
  return state.isQueued(from, nonce) ? "replacement transaction underpriced" : null
}

const insufficientFunds = "insufficient funds for gas * price + value"

/** Implements the port on the chain's state. */
const clientOf = (origin: string, parts: Parts): ChainClient => {
  const { chainId, fees, run, state } = parts
  const fail = (reason: ChainRpcError["reason"], message: string, rpcCode?: number) =>
    Effect.fail(new ChainRpcError({ reason, origin, message, ...(rpcCode !== undefined && { rpcCode }) }))

  const answer = <A>(effect: Effect.Effect<A, ChainRpcError>): Effect.Effect<A, ChainRpcError> =>
    Effect.suspend(() => {
      const reason = parts.broken()
      return reason === null ? effect : fail(reason, `${origin}: the node is broken down`)
    })
  const tell = <A>(value: () => A) => answer(Effect.sync(value))

  const execution = (
    call: Call,
    block = state.head.number,
    overrides?: ReadonlyMap<Address, StateOverride>
  ) =>
    Effect.suspend(() =>
      state.affords(call, block)
        ? run(call, block, overrides)
        : fail("rejected", "insufficient funds for transfer", -32_000)
    )

  const send = (raw: Hex.Hex): Effect.Effect<void, ChainRpcError> =>
    Effect.suspend(() => {
      const parsed = Transaction.parse(raw)
      if (parsed._tag === "Failure") return fail("rejected", parsed.failure.reason, -32_602)
      const message = objection(parsed.success, parts)
      if (message !== null)
        return fail("rejected", message, message === insufficientFunds ? -32_003 : -32_000)
      return state.add(parsed.success)
    })

  const found = (filter: LogFilter): ReadonlyArray<FoundLog> =>
    [...state.mined.values()].flatMap(({ receipt: { blockHash, blockNumber, logs, txHash } }) =>
      blockNumber < state.numberOf(filter.fromBlock) || blockNumber > state.numberOf(filter.toBlock)
        ? []
        : logs
            .filter((log) => matches(filter, log))
            .map((log): FoundLog => ({ ...log, txHash, blockNumber, blockHash }))
    )

  return {
    origin,
    chainId: tell(() => chainId),
    block: (tag) => tell(() => state.blocks[Number(state.numberOf(tag))] ?? null),
    header: (tag) => tell(() => state.headerOf(state.numberOf(tag))),
    fees: tell(() => fees),
    balance: (address) => tell(() => state.balanceOf(address)),
    code: (address) => tell(() => state.codes.get(address) ?? Hex.empty),
    transactionCount: (address, tag) =>
      tell(() => (typeof tag === "bigint" ? state.nonceAt(address, tag) : state.nonceOf(address))),
    transactionsIn: (block) =>
      tell(() =>
        state.blocks[Number(block)] === undefined
          ? null
          : [...state.mined.keys()]
              .map((txHash) => state.known(txHash))
              .filter((each) => each !== null)
              .filter((each) => each.blockNumber === block)
      ),
    call: (call, overrides, tag = "latest") =>
      answer(
        Effect.suspend(() => {
          const number = state.numberOf(tag)
          if (state.blocks[Number(number)] === undefined)
            return fail("unavailable", "header not found", -32_000)
          return Effect.map(execution(call, number, overrides), ({ data, success }) => ({
            success,
            data
          }))
        })
      ),
    estimateGas: (call) =>
      answer(
        Effect.map(execution(call), ({ data, gasUsed, success }) => ({
          success,
          data,
          gas: success ? gasUsed : 0n
        }))
      ),
    simulate: (calls) =>
      answer(
        Effect.forEach(calls, (call) =>
          Effect.map(
            execution(call),
            ({ logs, ...result }): SimulatedCall => ({
              ...result,
              logs: result.success ? logs.map((log, logIndex) => ({ ...log, logIndex })) : []
            })
          )
        )
      ),
    // The node mines a submitted transaction even if its caller leaves.
    sendRawTransaction: (raw) =>
      answer(Effect.flatMap(Effect.forkDetach(parts.miner.withPermits(1)(send(raw))), Fiber.join)),
    receipt: (txHash) => tell(() => state.mined.get(txHash)?.receipt ?? null),
    transaction: (txHash) => tell(() => state.known(txHash)),
    knows: (txHash) => tell(() => state.known(txHash) !== null),
    logs: (filter) => tell(() => found(filter)),
    logsOf: (hash, { address, topics }) =>
      answer(
        Effect.suspend(() => {
          const block = state.blocks.find((one) => one.hash === hash)?.number
          if (block === undefined) return fail("unavailable", "unknown block", -32_000)
          const within = { fromBlock: block, toBlock: block }
          return Effect.succeed(found({ topics, ...within, ...(address !== undefined && { address }) }))
        })
      )
  }
}

export const make = (options: Options): Effect.Effect<Node> =>
  Effect.sync(() => {
    const { balances, chainId, codes, execute = nothing, fees = defaultFees } = options
    const run: Parts["run"] = (call, block, overrides = new Map()) => execute(call, node, overrides, block)
    const state = new ChainState({
      chainId,
      genesis: options.genesis ?? 1_700_000_000,
      blockGasLimit: options.blockGasLimit ?? 30_000_000n,
      fees,
      balances,
      codes,
      execute: run
    })
    let broken: ChainRpcError["reason"] | null = null
    const parts = { chainId, fees, state, run, miner: Semaphore.makeUnsafe(1), broken: () => broken }
    const node: Node = {
      chainId,
      setBalance: (address, wei) => Effect.sync(() => void state.balances.set(address, wei)),
      setCode: (address, code) => Effect.sync(() => void state.codes.set(address, code)),
      mine: Effect.sync(() => state.addBlock()),
      breakDown: (reason) =>
        Effect.sync(() => {
          broken = reason
        }),
      mined: Effect.sync(() => [...state.mined.values()].map(({ signed }) => signed)),
      client: (origin) => clientOf(origin, parts)
    }
    return node
  })

/** Nodes by URL, for callers and the operator; other URLs are unreachable. */
export const layer = (nodes: Readonly<Record<string, Node>>): Layer.Layer<ChainRpc> =>
  Layer.sync(ChainRpc, () => {
    const byUrl = new Map(Object.entries(nodes).map(([url, node]) => [new URL(url).href, node]))
    const clients = new Map<string, ChainClient>()
    const connected = ({ href, origin }: URL, by: NamedBy): ChainClient | undefined => {
      const key = JSON.stringify([by, href])
      const client = clients.get(key) ?? byUrl.get(href)?.client(origin)
      if (client !== undefined) clients.set(key, client)
      return client
    }
    return {
      connect: (url, by) => {
        const parsed = URL.canParse(url) ? new URL(url) : undefined
        if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
          return Effect.fail(
            new ChainRpcError({ reason: "invalidUrl", origin: "", message: "expected an http or https URL" })
          )
        const client = connected(parsed, by)
        const { origin } = parsed
        return client === undefined
          ? Effect.fail(
              new ChainRpcError({ reason: "unreachable", origin, message: `${origin}: no node is there` })
            )
          : Effect.succeed(client)
      }
    }
  })
