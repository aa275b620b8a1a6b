import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Hex from "../../domain/primitives/Hex.js"
import { JournalError } from "../ports/journal/JournalError.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { Lane, TransactionRecord } from "../ports/journal/Transactions.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import * as Record from "./worker/Record.js"

/** A transaction that only uses a nonce. */
export type Filler = Pick<Record.Payload, "access" | "balance" | "chainNonce" | "prices" | "signer"> & {
  readonly chainId: bigint
}

/** Gas of a transfer to an account without code. */
const transferGas = 21_000n

/** The EOA lacks `missing` wei for this transaction beside those under way. Nothing was sent. */
export class LaneFunds extends Data.TaggedError("LaneFunds")<{ readonly missing: bigint }> {}

export interface NonceManager {
  /**
   * Runs while no other work of the lane does. What a transaction is built from (nonce, balance, simulation) is read
   * inside, so that it is of the moment.
   */
  readonly exclusive: <A, E, R>(lane: Lane, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Uses a nonce by a transfer of nothing to the EOA itself, which calls nobody: it goes beside transactions of any route. */
  readonly fill: (filler: Filler) => Effect.Effect<TransactionRecord, LaneFunds | SignerError | JournalError>
  /** The nonce as the journal knows it now; null: it is settled, or somebody else's. */
  readonly current: (record: TransactionRecord) => Effect.Effect<TransactionRecord | null, JournalError>
  /**
   * Signs the same payload at higher prices under the same nonce, and stores the bytes; inside `exclusive`. The record is
   * `current` there.
   */
  readonly replace: (
    record: TransactionRecord,
    signer: Signer,
    prices: Record.Payload["prices"]
  ) => Effect.Effect<TransactionRecord, Record.LaneDamaged | SignerError | JournalError>
}

export const NonceManager: Context.Key<NonceManager, NonceManager> = Context.Service("castellan/NonceManager")

/** The lanes of this process. */
export const make = (transactionJournal: TransactionJournal["Service"]): NonceManager => {
  const locks = new Map<string, Semaphore.Semaphore>()

  const lockOf = ({ chainId, signer }: Lane): Semaphore.Semaphore => {
    const key = `${chainId}:${signer}`
    const known = locks.get(key)
    if (known !== undefined) return known
    const lock = Semaphore.makeUnsafe(1)
    locks.set(key, lock)
    return lock
  }

  return {
    exclusive: (lane, effect) => lockOf(lane).withPermits(1)(effect),
    current: (record) =>
      Effect.map(
        transactionJournal.openOf({ chainId: record.chainId, signer: record.signer }),
        (open) => open.find(({ nonce }) => nonce === record.nonce) ?? null
      ),
    replace: (record, signer, prices) =>
      // Null: another process has seen it mined meanwhile, and what is known of it here is renewed as it is seen.
      Effect.map(
        Record.replace(transactionJournal, record, signer, prices),
        (replaced) => replaced ?? record
      ),
    fill: ({ chainId, ...filler }) =>
      Effect.flatMap(
        Record.record(transactionJournal, chainId, {
          ...filler,
          to: filler.signer.address,
          data: Hex.empty,
          value: 0n,
          gasLimit: transferGas,
          l1Fee: 0n,
          drainedTo: 0n,
          ops: [],
          direct: null
        }),
        (recorded): Effect.Effect<TransactionRecord, JournalError | LaneFunds> => {
          if (recorded._tag === "recorded") return Effect.succeed(recorded.record)
          if (recorded._tag === "insufficientFunds")
            return new LaneFunds({
              missing: recorded.reserved + transferGas * filler.prices.maxFeePerGas - filler.balance
            })
          return new JournalError({ message: `a nonce was not filled: ${recorded._tag}` })
        }
      )
  }
}
