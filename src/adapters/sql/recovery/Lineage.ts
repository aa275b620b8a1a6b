import * as Effect from "effect/Effect"
import { JournalError } from "../../../application/ports/journal/JournalError.js"
import { type Lane, type LaneKey, laneKey } from "../../../application/ports/journal/Transactions.js"

/** The newest transaction that this process has stored for a lane. */
export interface Stored extends Lane {
  readonly nonce: bigint
  readonly requestId: string
}

/**
 * Facts that the process knows its database contains. A database without them is an older one, swapped in under the running
 * process: a backup, or a standby that had not received everything.
 */
export interface Lineage {
  readonly stored: (lane: Lane) => Stored | null
  readonly newest: () => Stored | null
  readonly store: (transaction: Stored) => void
  /** Reports an older database: the process no longer reads or writes its journal. */
  readonly lose: Effect.Effect<never, JournalError>
  readonly intact: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | JournalError, R>
}

const older = new JournalError({
  message:
    "the database is older than what this process has stored there: restart every process of the service"
})

export const make = (): Lineage => {
  const byLane = new Map<LaneKey, Stored>()
  let newest: Stored | null = null
  let isLost = false
  return {
    stored: (lane) => byLane.get(laneKey(lane)) ?? null,
    newest: () => newest,
    store: (transaction) => {
      const before = byLane.get(laneKey(transaction))
      newest = transaction
      // A replacement may have an earlier nonce.
      if (before === undefined || before.nonce < transaction.nonce)
        byLane.set(laneKey(transaction), transaction)
    },
    lose: Effect.suspend(() => {
      const reported = isLost
        ? Effect.void
        : Effect.logError("older database found; signing stopped; restart every process")
      isLost = true
      return Effect.andThen(reported, Effect.fail(older))
    }),
    intact: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.suspend((): Effect.Effect<A, E | JournalError, R> => (isLost ? Effect.fail(older) : effect))
  }
}
