import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { JournalError } from "../ports/journal/JournalError.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import { type Lane, type LaneKey, laneKey, type TransactionRecord } from "../ports/journal/Transactions.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import * as Record from "./worker/Record.js"

export interface NonceManager {
  /** Runs the effect while no other work of the lane runs. Read nonce, balance and simulation inside, so that they are current. */
  readonly exclusive: <A, E, R>(lane: Lane, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly fill: (
    chainId: bigint,
    filler: Record.Filler
  ) => Effect.Effect<TransactionRecord, Record.LaneFunds | SignerError | JournalError>
  /** The journal's open record of the nonce; null: the nonce is settled, or was used externally. */
  readonly current: (record: TransactionRecord) => Effect.Effect<TransactionRecord | null, JournalError>
  /** See `Record.replace`. Call it inside `exclusive` with a record that `current` returned there. */
  readonly replace: (
    record: TransactionRecord,
    signer: Signer,
    prices: Record.Payload["prices"]
  ) => Effect.Effect<TransactionRecord, Record.LaneDamaged | SignerError | JournalError>
}

export const make = (transactionJournal: TransactionJournal["Service"]): NonceManager => {
  const locks = new Map<LaneKey, Semaphore.Semaphore>()
  return {
    exclusive: (lane, effect) => {
      const name = laneKey(lane)
      const lock = locks.get(name) ?? Semaphore.makeUnsafe(1)
      locks.set(name, lock)
      return lock.withPermits(1)(effect)
    },
    current: ({ chainId, nonce, signer }) =>
      Effect.map(
        transactionJournal.openOf({ chainId, signer }),
        (open) => open.find((record) => record.nonce === nonce) ?? null
      ),
    // Null: another process saw it mined; the monitor's next poll updates the record here.
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
