import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { AccountId } from "../Tenants.js"

/** A known account's request, refused before acceptance (422): no work was done, and its id is not bound. */
export interface Refusal {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  /** Null: the request was refused before its chain was known. */
  readonly chainId: bigint | null
  /** The error's code, and its message with the first detail. */
  readonly code: string
  readonly message: string
  /** The answer's body, JSON of at most `longestAnswer` characters; null: longer. */
  readonly answer: string | null
  /** Unix milliseconds. */
  readonly at: number
}

export const longestAnswer = 8_192

/** Most refusals kept; the oldest are deleted first. */
export const mostKept = 10_000

export interface Kept {
  /** Keeps the refusal within about a second. Never waits; drops refusals that the store cannot keep up with. */
  readonly note: (refusal: Refusal) => void
  /** Null: unknown, or no longer kept. */
  readonly find: (requestId: string) => Effect.Effect<Refusal | null>
  /** Newest first. */
  readonly latest: (limit: number) => Effect.Effect<ReadonlyArray<Refusal>>
}

/**
 * The latest refusals, for people who investigate them. They do not bind anything: a repeated request runs again. A
 * failing store loses refusals and fails no request; without a store none is kept.
 */
export const Refusals: Context.Reference<Kept> = Context.Reference<Kept>("castellan/Refusals", {
  defaultValue: () => ({
    note: () => {},
    find: () => Effect.succeed(null),
    latest: () => Effect.succeed([])
  })
})
