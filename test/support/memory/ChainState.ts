import * as Effect from "effect/Effect"
import type {
  Block,
  BlockTag,
  Call,
  CallResult,
  Header,
  KnownTransaction,
  NetworkFees,
  Receipt
} from "../../../src/application/ports/chain/ChainRpc.js"
import type { RawLog } from "../../../src/domain/evm/RawLog.js"
import type * as Transaction from "../../../src/domain/evm/Transaction.js"
import type { Address } from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"

/** Result of running a transaction or call. */
export interface Execution extends CallResult {
  readonly gasUsed: bigint
  readonly logs: ReadonlyArray<Omit<RawLog, "logIndex">>
}

export interface Options {
  readonly chainId: bigint
  readonly genesis: number
  readonly blockGasLimit: bigint
  readonly fees: NetworkFees
  readonly balances: ReadonlyMap<Address, bigint> | undefined
  readonly codes: ReadonlyMap<Address, Hex.Hex> | undefined
  /** Runs a transaction on a block's state. */
  readonly execute: (call: Call, block: bigint) => Effect.Effect<Execution>
}

interface Mined {
  readonly signed: Transaction.Signed
  readonly receipt: Receipt
}

/** Accounts, blocks and transactions of a chain that mines a block per transaction. */
export class ChainState {
  readonly balances: Map<Address, bigint>
  readonly codes: Map<Address, Hex.Hex>
  /** By hash, in block order. */
  readonly mined = new Map<Hex.Bytes32, Mined>()
  readonly blocks: Array<Block> = []
  head: Block
  readonly #nonces = new Map<Address, bigint>()
  /** Transactions ahead of their sender's nonce. */
  readonly #queued = new Map<Hex.Bytes32, Transaction.Signed>()
  /** Balances at the end of each block. */
  readonly #pastBalances: Array<ReadonlyMap<Address, bigint>> = []
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
    this.balances = new Map(options.balances)
    this.codes = new Map(options.codes)
    this.head = this.addBlock()
  }

  balanceOf(address: Address): bigint {
    return this.balances.get(address) ?? 0n
  }

  nonceOf(address: Address): bigint {
    return this.#nonces.get(address) ?? 0n
  }

  headerOf(number: bigint): Header | null {
    const block = this.blocks[Number(number)]
    const parent = this.blocks[Number(number) - 1]
    const parentHash = parent?.hash ?? Hex.unsafe32(`0x${"00".repeat(32)}`)
    return block === undefined ? null : { number, hash: block.hash, parentHash }
  }

  nonceAt(address: Address, block: bigint): bigint {
    return [...this.mined.values()]
      .filter(({ receipt, signed }) => signed.from === address && receipt.blockNumber <= block)
      .reduce(
        (next, { signed }) => (signed.transaction.nonce >= next ? signed.transaction.nonce + 1n : next),
        0n
      )
  }

  numberOf(tag: BlockTag): bigint {
    return typeof tag === "bigint" ? tag : this.head.number
  }

  /** Whether the sender has the call's value at the end of a block. */
  affords({ from, value }: Call, number: bigint): boolean {
    if (value === undefined || value === 0n || from === undefined) return true
    const balances = number === this.head.number ? this.balances : this.#pastBalances[Number(number)]
    return (balances?.get(from) ?? 0n) >= value
  }

  isKnown(txHash: Hex.Bytes32): boolean {
    return this.#queued.has(txHash) || this.mined.has(txHash)
  }

  /** Whether the sender has a queued transaction with this nonce. */
  isQueued(from: Address, nonce: bigint): boolean {
    return [...this.#queued.values()].some(
      (other) => other.from === from && other.transaction.nonce === nonce
    )
  }

  known(txHash: Hex.Bytes32): KnownTransaction | null {
    const included = this.mined.get(txHash)
    const signed = included?.signed ?? this.#queued.get(txHash)
    if (signed === undefined) return null
    const { chainId: _, legacy: __, ...transaction } = signed.transaction
    return { ...transaction, txHash, from: signed.from, blockNumber: included?.receipt.blockNumber ?? null }
  }

  addBlock(): Block {
    const { blockGasLimit, chainId, fees, genesis } = this.#options
    const number = BigInt(this.blocks.length)
    const block = {
      number,
      hash: Keccak.hashText(`block ${number} of chain ${chainId}`),
      timestamp: genesis + this.blocks.length,
      gasLimit: blockGasLimit,
      baseFeePerGas: fees.nextBaseFee
    }
    this.blocks.push(block)
    this.#pastBalances.push(new Map(this.balances))
    this.head = block
    return block
  }

  /** Accepts a transaction, then mines every queued transaction whose nonce is next. */
  add(signed: Transaction.Signed): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#queued.set(signed.hash, signed)
      return this.#includeReady
    })
  }

  readonly #includeReady: Effect.Effect<void> = Effect.suspend(() => {
    for (const [hash, signed] of this.#queued)
      if (signed.transaction.nonce === this.nonceOf(signed.from)) {
        this.#queued.delete(hash)
        return Effect.andThen(this.#include(signed), this.#includeReady)
      }
    return Effect.void
  })

  /** Runs one transaction in a new block, on the chain's state: no execution is undone. */
  #include(signed: Transaction.Signed): Effect.Effect<void> {
    const { data, gasLimit, nonce, to, value } = signed.transaction
    return Effect.suspend(() => {
      this.#nonces.set(signed.from, nonce + 1n)
      const call = { from: signed.from, to, data, value, gas: gasLimit }
      return Effect.map(this.#options.execute(call, this.head.number), (execution) =>
        this.#record(signed, execution)
      )
    })
  }

  #record(signed: Transaction.Signed, { gasUsed, logs, success }: Execution): void {
    const { from, hash: txHash, transaction } = signed
    const effectiveGasPrice = this.#priceOf(transaction)
    const moved = success ? transaction.value : 0n
    this.balances.set(from, this.balanceOf(from) - gasUsed * effectiveGasPrice - moved)
    this.balances.set(transaction.to, this.balanceOf(transaction.to) + moved)
    const { hash: blockHash, number: blockNumber } = this.addBlock()
    const receipt = {
      txHash,
      success,
      blockNumber,
      blockHash,
      gasUsed,
      cumulativeGasUsed: gasUsed,
      effectiveGasPrice,
      from,
      logs: success ? logs.map((log, logIndex) => ({ ...log, logIndex })) : []
    }
    this.mined.set(txHash, { signed, receipt })
  }

  #priceOf({ maxFeePerGas, maxPriorityFeePerGas }: Transaction.Transaction): bigint {
    const wanted = (this.#options.fees.nextBaseFee ?? 0n) + maxPriorityFeePerGas
    return wanted < maxFeePerGas ? wanted : maxFeePerGas
  }
}
