/**
 * Nonces of a lane that the chain has and the journal lacks: used by another holder of the key, or lost when an older backup
 * was restored. Pure.
 *
 * Gotchas: while a nonce is unknown, no unexposed op is signed, rejected, expired or renumbered.
 */

export interface State {
  /** Seen below the chain's pending nonce. A nonce leaves once a block has used it and its transaction is known or read. */
  readonly unknown: ReadonlySet<bigint>
  /** Time of the last read of an own unknown transaction, Unix milliseconds: requests accepted before may have lost bytes. */
  readonly provenAt: number
  /** Until then lost bytes may land, by `MonotonicTime`, milliseconds. */
  readonly provenUntil: number
}

export type Event =
  /** The key's nonces on the chain; `isKnown`: the journal has the nonce's transaction, or it was read. */
  | {
      readonly _tag: "compared"
      readonly latest: bigint
      readonly pending: bigint
      /** All lower nonces are known. */
      readonly from: bigint
      readonly isKnown: (nonce: bigint) => boolean
    }
  /**
   * The transaction that used the nonce was read; `at`: Unix milliseconds, `now`: by `MonotonicTime`. `isOurs`: it carries
   * castellan's work.
   */
  | {
      readonly _tag: "read"
      readonly nonce: bigint
      readonly isOurs: boolean
      readonly at: number
      readonly now: number
    }
  /** `provenAt` as recorded by an earlier process; null: never. */
  | { readonly _tag: "resumed"; readonly provenAt: number | null; readonly at: number; readonly now: number }

/** Validity of service-signed ops, milliseconds: a lost op lands within it, or never. */
export const lostMillis = 600_000

export const clear: State = { unknown: new Set(), provenAt: 0, provenUntil: 0 }

export const step = (state: State, event: Event): State => {
  const unknown = new Set(state.unknown)
  switch (event._tag) {
    case "compared": {
      const { from, isKnown, latest, pending } = event
      for (let nonce = from; nonce < pending; nonce += 1n) if (!isKnown(nonce)) unknown.add(nonce)
      // A transaction dropped from the pool may still be mined until another one uses its nonce.
      for (const nonce of unknown) if (nonce < latest && isKnown(nonce)) unknown.delete(nonce)
      return { ...state, unknown }
    }
    case "read":
      unknown.delete(event.nonce)
      return event.isOurs
        ? { unknown, provenAt: event.at, provenUntil: event.now + lostMillis }
        : { ...state, unknown }
    case "resumed": {
      const { at, now, provenAt } = event
      if (provenAt === null) return state
      const left = Math.min(Math.max(provenAt + lostMillis - at, 0), lostMillis)
      return { unknown, provenAt, provenUntil: now + left }
    }
  }
}

/** Unknown nonces that a block has used: their transactions can be read. */
export const readable = ({ unknown }: State, latest: bigint): ReadonlyArray<bigint> =>
  [...unknown].filter((nonce) => nonce < latest).toSorted((one, other) => (one < other ? -1 : 1))

/** Whether unexposed work may be signed. */
export const maySign = ({ unknown }: State): boolean => unknown.size === 0

/** Whether unexposed work accepted at that time, Unix milliseconds, may fail or expire. */
export const mayGiveUp = (
  { provenAt, provenUntil, unknown }: State,
  now: number,
  acceptedAt: number
): boolean => unknown.size === 0 && (now >= provenUntil || acceptedAt > provenAt)
