import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/evm/Address.js"
import type { Bytes32, Hex } from "../../domain/evm/Hex.js"
import * as Transaction from "../../domain/evm/Transaction.js"
import type { FeePrices } from "../../domain/op/Fees.js"
import type { ChainClient } from "../ports/ChainRpc.js"
import type { Journal, JournalError } from "../ports/Journal.js"
import type { Signer, SignerError } from "../ports/Signers.js"

/** One transaction that a lane shall carry. */
export interface Payload {
  readonly requestId: string
  /** Indexes of the request's ops in it. */
  readonly ops: ReadonlyArray<number>
  readonly chain: ChainClient
  readonly chainId: bigint
  readonly signer: Signer
  readonly to: Address
  readonly data: Hex
  readonly value: bigint
  readonly gasLimit: bigint
  readonly prices: FeePrices
  /** Wei that layer 1 may ask for the transaction's data, beside what its gas costs. */
  readonly l1Fee: bigint
  /** The EOA's pending nonce and its balance, as just read. */
  readonly chainNonce: bigint
  readonly balance: bigint
}

/** A transaction whose bytes are stored, and that was offered to the node. */
export interface Sent {
  readonly nonce: bigint
  readonly txHash: Bytes32
  readonly raw: Hex
}

/** The EOA lacks `missing` wei for this transaction beside those under way. Nothing was sent. */
export class LaneFunds extends Data.TaggedError("LaneFunds")<{ readonly missing: bigint }> {}

export interface Lanes {
  /**
   * Allocates the lane's next nonce, signs, stores the bytes and only then broadcasts them. Transactions of one
   * lane go one after another up to the broadcast. A node that refuses or does not answer is no failure here:
   * unknown means perhaps sent, and the watcher goes on with the stored bytes.
   */
  readonly transact: (payload: Payload) => Effect.Effect<Sent, LaneFunds | SignerError | JournalError>
}

/** The lanes of this process. One process owns the journal, so a lock in memory is enough. */
export const make = (journal: Journal["Type"]): Lanes => {
  const locks = new Map<string, Effect.Semaphore>()

  const lockOf = (chainId: bigint, signer: Address): Effect.Semaphore => {
    const key = `${chainId}:${signer}`
    const known = locks.get(key)
    if (known !== undefined) return known
    const lock = Effect.unsafeMakeSemaphore(1)
    locks.set(key, lock)
    return lock
  }

  const transact = (payload: Payload) =>
    Effect.gen(function* () {
      const { chain, chainId, gasLimit, prices, signer, value } = payload
      const lane = { chainId, signer: signer.address }
      const maxCost = gasLimit * prices.maxFeePerGas + payload.l1Fee + value
      const allocation = yield* journal.allocate({
        ...lane,
        requestId: payload.requestId,
        chainNonce: payload.chainNonce,
        maxCost,
        balance: payload.balance,
        ops: payload.ops
      })
      if (allocation._tag === "insufficientFunds")
        return yield* new LaneFunds({ missing: allocation.reserved + maxCost - payload.balance })
      const { nonce } = allocation
      const transaction: Transaction.Transaction = {
        chainId,
        nonce,
        to: payload.to,
        data: payload.data,
        value,
        gasLimit,
        ...prices
      }
      const signature = yield* Effect.tapError(signer.sign(Transaction.signingDigest(transaction)), () =>
        journal.unallocate(lane, nonce)
      )
      const raw = Transaction.serialize(transaction, signature)
      const txHash = Transaction.hash(raw)
      yield* journal.recordSigned({ ...lane, nonce, txHash, raw, ...prices })
      yield* Effect.catchAll(chain.sendRawTransaction(raw), (error) =>
        Effect.annotateLogs(
          Effect.logWarning(`the node did not take a transaction; it stays watched: ${error.message}`),
          { txHash }
        )
      )
      return { nonce, txHash, raw }
    })

  return {
    transact: (payload) =>
      Effect.uninterruptible(
        lockOf(payload.chainId, payload.signer.address).withPermits(1)(transact(payload))
      )
  }
}
