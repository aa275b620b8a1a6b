/**
 * The nonces of a lane that the chain has and the journal does not know: of a foreign user of the key, or of a past that an
 * older backup of the journal has lost. Pure.
 *
 * Gotchas: while one of them is unknown, nothing that nobody has seen signed is signed, rejected, expired or renumbered.
 */

export interface State {
  /** Seen below the chain's pending nonce: each stays until a block has used it and its transaction is known or was read. */
  readonly unknown: ReadonlySet<bigint>
  /**
   * When one of them was read last that was ours: what was accepted by then may be among bytes that the journal has lost. Unix
   * milliseconds.
   */
  readonly provenAt: number
  /** Until then these may land, by `MonotonicTime`, milliseconds. */
  readonly provenUntil: number
}

export type Event =
  /** The chain's nonces of the key; `isKnown`: the journal has a transaction for the nonce, or it was read before. */
  | {
      readonly _tag: "looked"
      readonly latest: bigint
      readonly pending: bigint
      /** All nonces below are known. */
      readonly from: bigint
      readonly isKnown: (nonce: bigint) => boolean
    }
  /**
   * The transaction that has used the nonce was read, at that time: `at` in Unix milliseconds, `now` by `MonotonicTime`.
   * `isOurs`: it carries what a lane of castellan carries.
   */
  | {
      readonly _tag: "read"
      readonly nonce: bigint
      readonly isOurs: boolean
      readonly at: number
      readonly now: number
    }
  /** What the journal tells of that time in a life before; null: none was ours. */
  | { readonly _tag: "resumed"; readonly provenAt: number | null; readonly at: number; readonly now: number }

/** As long as ops that the service signs are good: what the journal has lost of them lands until then, or never. */
export const lostMillis = 600_000

export const clear: State = { unknown: new Set(), provenAt: 0, provenUntil: 0 }

export const step = (state: State, event: Event): State => {
  const unknown = new Set(state.unknown)
  switch (event._tag) {
    case "looked": {
      const { from, isKnown, latest, pending } = event
      for (let nonce = from; nonce < pending; nonce += 1n) if (!isKnown(nonce)) unknown.add(nonce)
      // One that the pool has lost may still be mined, as long as no other one is under its nonce.
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

/** Those that a block has used: their transactions can be read. */
export const readable = ({ unknown }: State, latest: bigint): ReadonlyArray<bigint> =>
  [...unknown].filter((nonce) => nonce < latest).toSorted((one, other) => (one < other ? -1 : 1))

/** What was never exposed may be signed. */
export const maySign = ({ unknown }: State): boolean => unknown.size === 0

/** What was accepted then, Unix milliseconds, and never exposed, may fail or expire. */
export const mayGiveUp = (
  { provenAt, provenUntil, unknown }: State,
  now: number,
  acceptedAt: number
): boolean => unknown.size === 0 && (now >= provenUntil || acceptedAt > provenAt)
