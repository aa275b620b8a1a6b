import * as Effect from "effect/Effect"
import { JournalError } from "../../../application/ports/journal/JournalError.js"

/** The newest transaction of a lane that this process has stored. */
export interface Stored {
  readonly chainId: bigint
  readonly signer: string
  readonly nonce: bigint
  /** One of the requests that it is of. */
  readonly requestId: string
}

/**
 * What a process knows that its database has to hold. A database that lacks it is an older one, which was put in the place of
 * the other under the running process: a backup, or a standby that had not received everything.
 */
export interface Lineage {
  readonly stored: (lane: Pick<Stored, "chainId" | "signer">) => Stored | null
  /** Of all lanes. */
  readonly newest: () => Stored | null
  readonly store: (transaction: Stored) => void
  /** The database is an older one: from here on this process neither reads its journal nor writes to it. */
  readonly lose: Effect.Effect<never, JournalError>
  /** Fails from then on. */
  readonly intact: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | JournalError, R>
}

const older = new JournalError({
  message:
    "the database is older than what this process has stored there: restart every process of the service"
})

export const make = (): Lineage => {
  const byLane = new Map<string, Stored>()
  let newest: Stored | null = null
  let isLost = false
  const nameOf = ({ chainId, signer }: Pick<Stored, "chainId" | "signer">) => `${chainId} ${signer}`
  return {
    stored: (lane) => byLane.get(nameOf(lane)) ?? null,
    newest: () => newest,
    store: (transaction) => {
      const before = byLane.get(nameOf(transaction))
      newest = transaction
      // A replacement may be of an earlier nonce.
      if (before === undefined || before.nonce < transaction.nonce)
        byLane.set(nameOf(transaction), transaction)
    },
    lose: Effect.suspend(() => {
      const told = isLost
        ? Effect.void
        : Effect.logError("database replaced by an older one; signing stopped; restart every process")
      isLost = true
      return Effect.andThen(told, Effect.fail(older))
    }),
    intact: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.suspend((): Effect.Effect<A, E | JournalError, R> => (isLost ? Effect.fail(older) : effect))
  }
}
