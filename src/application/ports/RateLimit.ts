import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { AccountId, Tier } from "./Accounts.js"

/** Requests per UTC minute and per UTC hour. */
export const limits: Readonly<Record<Tier, { readonly minute: number; readonly hour: number }>> = {
  free: { minute: 60, hour: 1_000 },
  pro: { minute: 300, hour: 10_000 },
  enterprise: { minute: 1_000, hour: 50_000 }
}

/** The state of the window that binds first, after this request was counted (or refused). */
export interface Allowance {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Seconds until that window begins anew, at least 1. */
  readonly resetSeconds: number
}

export class RateLimitError extends Data.TaggedError("RateLimitError")<{ readonly message: string }> {}

/** Counts the requests of accounts in fixed UTC windows. */
export class RateLimit extends Context.Tag("castellan/RateLimit")<
  RateLimit,
  {
    /** Counts one request of the account; a refused one is not counted. */
    readonly take: (account: AccountId, tier: Tier) => Effect.Effect<Allowance, RateLimitError>
  }
>() {}
