import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type Block,
  type BlockTag,
  type Call,
  type CallResult,
  type ChainClient,
  ChainRpc,
  ChainRpcError,
  type FoundLog,
  type KnownTransaction,
  type LogFilter,
  type NamedBy,
  type NetworkFees,
  type Receipt,
  type SimulatedCall,
  type StateOverride
} from "../../application/ports/chain/ChainRpc.js"
import type { RawLog } from "../../domain/evm/RawLog.js"
import * as Transaction from "../../domain/evm/Transaction.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"

/** What a transaction or call does when it runs. */
export interface Execution extends CallResult {
  readonly gasUsed: bigint
  readonly logs: ReadonlyArray<Omit<RawLog, "logIndex">>
}

/**
 * The chain's code: what calls and transactions do. It may read and write the node it belongs to. `block` is the number
 * of the one on whose state it runs: the latest, for calls at an older one that one.
 */
export type Execute = (
  call: Call,
  node: Node,
  overrides: ReadonlyMap<Address, StateOverride>,
  block: bigint
) => Effect.Effect<Execution>

/** Succeeds, returns nothing, costs what a transfer costs. */
export const nothing: Execute = () =>
  Effect.succeed({ success: true, data: Hex.empty, gasUsed: 21_000n, logs: [] })

export interface Options {
  readonly chainId: bigint
  /** Unix seconds of block 0. Each block is one second after the one before it. */
  readonly genesis?: number
  readonly blockGasLimit?: bigint
  /** The base fee of every block, and the tip that the node suggests. */
  readonly fees?: NetworkFees
  readonly execute?: Execute
  /** Wei. */
  readonly balances?: ReadonlyMap<Address, bigint>
  readonly codes?: ReadonlyMap<Address, Hex.Hex>
}

/**
 * A chain without an EVM, mined by one node: a block per transaction, at once. Of older blocks it remembers the
 * balances; codes and nonces are told as they are now.
 */
export interface Node {
  readonly chainId: bigint
  readonly setBalance: (address: Address, wei: bigint) => Effect.Effect<void>
  readonly setCode: (address: Address, code: Hex.Hex) => Effect.Effect<void>
  /** Adds an empty block. */
  readonly mine: Effect.Effect<Block>
  /** Every call of the port fails with this from now on; null: no longer. */
  readonly breakDown: (reason: ChainRpcError["reason"] | null) => Effect.Effect<void>
  /** The transactions in blocks, oldest first. */
  readonly mined: Effect.Effect<ReadonlyArray<Transaction.Signed>>
  /** The node under a URL of this origin. */
  readonly client: (origin: string) => ChainClient
}

const defaultFees: NetworkFees = { nextBaseFee: 1_000_000_000n, tip: 1_000_000_000n }

interface Mined {
  readonly signed: Transaction.Signed
  readonly receipt: Receipt
}

const matches = (filter: LogFilter, log: RawLog): boolean =>
  (filter.address === undefined || filter.address.includes(log.address)) &&
  filter.topics.every((wanted, place) => {
    const topic = log.topics[place]
    if (wanted === null) return true
    return topic !== undefined && (typeof wanted === "string" ? wanted === topic : wanted.includes(topic))
  })

export const make = (options: Options): Effect.Effect<Node> =>
  Effect.sync(() => {
    const { chainId } = options
    const execute = options.execute ?? nothing
    const fees = options.fees ?? defaultFees
    const balances = new Map(options.balances)
    const codes = new Map(options.codes)
    const nonces = new Map<Address, bigint>()
    const mined = new Map<Hex.Bytes32, Mined>()
    /** Transactions ahead of their sender's nonce. */
    const queued = new Map<Hex.Bytes32, Transaction.Signed>()
    const blocks: Array<Block> = []
    /** Balances at the end of each block. */
    const pasts: Array<ReadonlyMap<Address, bigint>> = []
    let broken: ChainRpcError["reason"] | null = null
    /** Transactions run one after another, however long one takes. */
    const miner = Effect.unsafeMakeSemaphore(1)

    const balanceOf = (address: Address) => balances.get(address) ?? 0n
    const nonceOf = (address: Address) => nonces.get(address) ?? 0n

    const nonceAt = (address: Address, block: bigint) =>
      [...mined.values()]
        .filter(({ receipt, signed }) => signed.from === address && receipt.blockNumber <= block)
        .reduce(
          (next, { signed }) => (signed.transaction.nonce >= next ? signed.transaction.nonce + 1n : next),
          0n
        )

    const addBlock = (): Block => {
      const number = BigInt(blocks.length)
      const block = {
        number,
        hash: Keccak.hashText(`block ${number} of chain ${chainId}`),
        timestamp: (options.genesis ?? 1_700_000_000) + blocks.length,
        gasLimit: options.blockGasLimit ?? 30_000_000n,
        baseFeePerGas: fees.nextBaseFee
      }
      blocks.push(block)
      pasts.push(new Map(balances))
      return block
    }
    let head = addBlock()

    const priceOf = ({ maxFeePerGas, maxPriorityFeePerGas }: Transaction.Transaction) => {
      const wanted = (fees.nextBaseFee ?? 0n) + maxPriorityFeePerGas
      return wanted < maxFeePerGas ? wanted : maxFeePerGas
    }

    /** Runs one transaction in a block of its own. Its state is the node's: no execution is undone. */
    const include = (signed: Transaction.Signed) =>
      Effect.gen(function* () {
        const { from, hash: txHash, transaction } = signed
        const { data, gasLimit, nonce, to, value } = transaction
        nonces.set(from, nonce + 1n)
        const execution = yield* execute(
          { from, to, data, value, gas: gasLimit },
          node,
          new Map(),
          head.number
        )
        const effectiveGasPrice = priceOf(transaction)
        const moved = execution.success ? value : 0n
        balances.set(from, balanceOf(from) - execution.gasUsed * effectiveGasPrice - moved)
        balances.set(to, balanceOf(to) + moved)
        head = addBlock()
        mined.set(txHash, {
          signed,
          receipt: {
            txHash,
            success: execution.success,
            blockNumber: head.number,
            blockHash: head.hash,
            gasUsed: execution.gasUsed,
            cumulativeGasUsed: execution.gasUsed,
            effectiveGasPrice,
            from,
            logs: execution.success ? execution.logs.map((log, logIndex) => ({ ...log, logIndex })) : []
          }
        })
      })

    /** Includes every queued transaction whose turn has come. */
    const includeReady: Effect.Effect<void> = Effect.suspend(() => {
      for (const [hash, signed] of queued)
        if (signed.transaction.nonce === nonceOf(signed.from)) {
          queued.delete(hash)
          return Effect.zipRight(include(signed), includeReady)
        }
      return Effect.void
    })

    const at = (tag: BlockTag): bigint => (typeof tag === "bigint" ? tag : head.number)

    const known = (txHash: Hex.Bytes32): KnownTransaction | null => {
      const included = mined.get(txHash)
      const signed = included?.signed ?? queued.get(txHash)
      if (signed === undefined) return null
      const { chainId: _, legacy: __, ...transaction } = signed.transaction
      return { ...transaction, txHash, from: signed.from, blockNumber: included?.receipt.blockNumber ?? null }
    }

    const client = (origin: string): ChainClient => {
      const fail = (reason: ChainRpcError["reason"], message: string, rpcCode?: number) =>
        Effect.fail(new ChainRpcError({ reason, origin, message, ...(rpcCode !== undefined && { rpcCode }) }))

      const answer = <A>(effect: Effect.Effect<A, ChainRpcError>): Effect.Effect<A, ChainRpcError> =>
        Effect.suspend(() => (broken === null ? effect : fail(broken, `${origin}: the node is broken down`)))
      const tell = <A>(value: () => A) => answer(Effect.sync(value))

      const affords = ({ from, value }: Call, number: bigint) => {
        if (value === undefined || value === 0n || from === undefined) return true
        return ((number === head.number ? balances : pasts[Number(number)])?.get(from) ?? 0n) >= value
      }
      const unaffordable = fail("rejected", "insufficient funds for transfer", -32_000)

      const send = (raw: Hex.Hex): Effect.Effect<void, ChainRpcError> =>
        Effect.gen(function* () {
          const parsed = Transaction.parse(raw)
          if (parsed._tag === "Left") return yield* fail("rejected", parsed.left.reason, -32_602)
          const { from, hash, transaction } = parsed.right
          const { gasLimit, maxFeePerGas, nonce, value } = transaction
          if (transaction.chainId !== chainId)
            return yield* fail("rejected", "invalid chain id for signer", -32_000)
          if (queued.has(hash) || mined.has(hash)) return yield* fail("rejected", "already known", -32_000)
          if (nonce < nonceOf(from)) return yield* fail("rejected", "nonce too low", -32_000)
          if (!transaction.legacy && fees.nextBaseFee === null)
            return yield* fail("rejected", "transaction type not supported", -32_000)
          if (maxFeePerGas < (fees.nextBaseFee ?? 0n))
            return yield* fail("rejected", "max fee per gas less than block base fee", -32_000)
          if (balanceOf(from) < gasLimit * maxFeePerGas + value)
            return yield* fail("rejected", "insufficient funds for gas * price + value", -32_003)
          for (const other of queued.values())
            if (other.from === from && other.transaction.nonce === nonce)
              return yield* fail("rejected", "replacement transaction underpriced", -32_000)
          queued.set(hash, parsed.right)
          yield* includeReady
        })

      return {
        origin,
        chainId: tell(() => chainId),
        block: (tag) => tell(() => blocks[Number(at(tag))] ?? null),
        fees: tell(() => fees),
        balance: (address) => tell(() => balanceOf(address)),
        code: (address) => tell(() => codes.get(address) ?? Hex.empty),
        transactionCount: (address, tag) =>
          tell(() => (typeof tag === "bigint" ? nonceAt(address, tag) : nonceOf(address))),
        transactionsIn: (block) =>
          tell(() =>
            blocks[Number(block)] === undefined
              ? null
              : [...mined.keys()]
                  .map(known)
                  .filter((each) => each !== null)
                  .filter((each) => each.blockNumber === block)
          ),
        call: (call, overrides = new Map(), tag = "latest") =>
          answer(
            Effect.suspend(() => {
              const number = at(tag)
              if (blocks[Number(number)] === undefined) return fail("rejected", "header not found", -32_000)
              return affords(call, number)
                ? Effect.map(execute(call, node, overrides, number), ({ data, success }) => ({
                    success,
                    data
                  }))
                : unaffordable
            })
          ),
        estimateGas: (call) =>
          answer(
            Effect.suspend(() =>
              affords(call, head.number)
                ? Effect.map(execute(call, node, new Map(), head.number), ({ data, gasUsed, success }) => ({
                    success,
                    data,
                    gas: success ? gasUsed : 0n
                  }))
                : unaffordable
            )
          ),
        simulate: (calls) =>
          answer(
            Effect.forEach(calls, (call) =>
              Effect.suspend(() =>
                affords(call, head.number)
                  ? Effect.map(
                      execute(call, node, new Map(), head.number),
                      ({ logs, ...result }): SimulatedCall => ({
                        ...result,
                        logs: result.success ? logs.map((log, logIndex) => ({ ...log, logIndex })) : []
                      })
                    )
                  : unaffordable
              )
            )
          ),
        sendRawTransaction: (raw) => answer(miner.withPermits(1)(send(raw))),
        receipt: (txHash) => tell(() => mined.get(txHash)?.receipt ?? null),
        transaction: (txHash) => tell(() => known(txHash)),
        logs: (filter) =>
          tell(() =>
            [...mined.values()].flatMap(({ receipt: { blockHash, blockNumber, logs, txHash } }) =>
              blockNumber < at(filter.fromBlock) || blockNumber > at(filter.toBlock)
                ? []
                : logs
                    .filter((log) => matches(filter, log))
                    .map((log): FoundLog => ({ ...log, txHash, blockNumber, blockHash }))
            )
          )
      }
    }

    const node: Node = {
      chainId,
      setBalance: (address, wei) => Effect.sync(() => void balances.set(address, wei)),
      setCode: (address, code) => Effect.sync(() => void codes.set(address, code)),
      mine: Effect.sync(() => {
        head = addBlock()
        return head
      }),
      breakDown: (reason) =>
        Effect.sync(() => {
          broken = reason
        }),
      mined: Effect.sync(() => [...mined.values()].map(({ signed }) => signed)),
      client
    }
    return node
  })

/** Nodes by URL, for callers and the operator alike; any other URL is unreachable. */
export const layer = (nodes: Readonly<Record<string, Node>>): Layer.Layer<ChainRpc> =>
  Layer.sync(ChainRpc, () => {
    const byUrl = new Map(Object.entries(nodes).map(([url, node]) => [new URL(url).href, node]))
    const clients = new Map<string, ChainClient>()
    const clientOf = ({ href, origin }: URL, by: NamedBy): ChainClient | undefined => {
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
        const client = clientOf(parsed, by)
        const { origin } = parsed
        return client === undefined
          ? Effect.fail(
              new ChainRpcError({ reason: "unreachable", origin, message: `${origin}: no node is there` })
            )
          : Effect.succeed(client)
      }
    }
  })
