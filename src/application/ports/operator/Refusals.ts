import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { AccountId } from "../Tenants.js"

/** A request of a known account that was refused before acceptance (422). Nothing of it was done, and nothing is bound to its id. */
export interface Refusal {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  /** Null: the request was refused before its chain was known. */
  readonly chainId: bigint | null
  /** The code of the error, and its text with the first detail. */
  readonly code: string
  readonly message: string
  /** The body of the answer, JSON of at most `longestAnswer` characters; null: it was longer. */
  readonly answer: string | null
  /** Unix milliseconds. */
  readonly at: number
}

export const longestAnswer = 8_192

/** Refusals that are kept: the oldest go first. */
export const mostKept = 10_000

export interface Kept {
  /** Keeps the refusal within a second or so. Never waits; drops refusals that arrive faster than the store takes them. */
  readonly note: (refusal: Refusal) => void
  /** Null: unknown, or no longer kept. */
  readonly find: (requestId: string) => Effect.Effect<Refusal | null>
  /** The newest first. */
  readonly latest: (limit: number) => Effect.Effect<ReadonlyArray<Refusal>>
}

/**
 * The latest refusals, for people who ask why. It is no record of work: a repeat of the request runs anew. A store that fails
 * loses refusals and fails no request; without a store none is kept.
 */
export const Refusals: Context.Reference<Kept> = Context.Reference<Kept>("castellan/Refusals", {
  defaultValue: () => ({
    note: () => {},
    find: () => Effect.succeed(null),
    latest: () => Effect.succeed([])
  })
})
