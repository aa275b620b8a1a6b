import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { JournalError } from "../ports/journal/JournalError.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { Lane, TransactionRecord } from "../ports/journal/Transactions.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import * as InFlight from "./InFlight.js"
import * as Record from "./worker/Record.js"

export interface NonceManager {
  /**
   * Runs while no other work of the lane does. What a transaction is built from (nonce, balance, simulation) is read
   * inside, so that it is of the moment.
   */
  readonly exclusive: <A, E, R>(lane: Lane, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** See `Record.fill`. */
  readonly fill: (
    chainId: bigint,
    filler: Record.Filler
  ) => Effect.Effect<TransactionRecord, Record.LaneFunds | SignerError | JournalError>
  /** The nonce as the journal knows it now; null: it is settled, or somebody else's. */
  readonly current: (record: TransactionRecord) => Effect.Effect<TransactionRecord | null, JournalError>
  /** See `Record.replace`; inside `exclusive`, of a record that is `current` there. */
  readonly replace: (
    record: TransactionRecord,
    signer: Signer,
    prices: Record.Payload["prices"]
  ) => Effect.Effect<TransactionRecord, Record.LaneDamaged | SignerError | JournalError>
}

/** The lanes of this process. */
export const make = (transactionJournal: TransactionJournal["Service"]): NonceManager => {
  const locks = new Map<string, Semaphore.Semaphore>()
  return {
    exclusive: (lane, effect) => {
      const name = InFlight.nameOf(lane)
      const lock = locks.get(name) ?? Semaphore.makeUnsafe(1)
      locks.set(name, lock)
      return lock.withPermits(1)(effect)
    },
    current: ({ chainId, nonce, signer }) =>
      Effect.map(
        transactionJournal.openOf({ chainId, signer }),
        (open) => open.find((record) => record.nonce === nonce) ?? null
      ),
    // Null: another process has seen it mined meanwhile, and what is known of it here is renewed as it is seen.
    replace: (record, signer, prices) =>
      Effect.map(
        Record.replace(transactionJournal, record, signer, prices),
        (replaced) => replaced ?? record
      ),
    fill: (chainId, filler) =>
      Effect.filterOrFail(
        Record.fill(transactionJournal, chainId, filler),
        (record) => record !== null,
        () => new JournalError({ message: "a nonce was not filled: it is used" })
      )
  }
}
