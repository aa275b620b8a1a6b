import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { AccountId, OwnLimits, Tier } from "./Tenants.js"

/** Requests per UTC minute and per UTC hour. */
export interface Limits {
  readonly minute: number
  readonly hour: number
}

export const limits: Readonly<Record<Tier, Limits>> = {
  free: { minute: 60, hour: 1_000 },
  pro: { minute: 300, hour: 10_000 },
  enterprise: { minute: 1_000, hour: 50_000 }
}

/** Most that an account may be given as its own. */
export const mostPerMinute = 1_000_000
export const mostPerHour = 60 * mostPerMinute

/** What an account may do: what it has of its own, else what its tier has. */
export const limitsOf = ({
  requestsPerHour,
  requestsPerMinute,
  tier
}: OwnLimits & { readonly tier: Tier }): Limits => ({
  minute: requestsPerMinute ?? limits[tier].minute,
  hour: requestsPerHour ?? limits[tier].hour
})

/** The state of the window that binds first, after this request was counted (or refused). */
export interface Allowance {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Seconds until that window begins anew, at least 1. */
  readonly resetSeconds: number
}

/** Windows begin at full UTC minutes and hours. Milliseconds. */
export const windowMillis = { minute: 60_000, hour: 3_600_000 } as const

/** When the window of that time began. */
export const beginsAt = (window: keyof typeof windowMillis, now: number): number =>
  now - (now % windowMillis[window])

/** What becomes of a request that comes when so many have been counted in the current windows. */
export const allowance = (
  limits: Limits,
  counted: { readonly minute: number; readonly hour: number },
  now: number
): Allowance => {
  const left = { minute: limits.minute - counted.minute, hour: limits.hour - counted.hour }
  // The hour binds when it leaves no more than the minute does: it stays closed for longer.
  const binding = left.hour <= left.minute || left.hour <= 0 ? "hour" : "minute"
  const allowed = left[binding] > 0
  return {
    allowed,
    limit: limits[binding],
    remaining: allowed ? left[binding] - 1 : 0,
    resetSeconds: Math.ceil((beginsAt(binding, now) + windowMillis[binding] - now) / 1_000)
  }
}

export class RateLimitError extends Data.TaggedError("RateLimitError")<{ readonly message: string }> {}

/** Counts the requests of accounts in fixed UTC windows. */
export class RateLimit extends Context.Service<
  RateLimit,
  {
    /** Counts one request of the account; a refused one is not counted. */
    readonly take: (account: AccountId, limits: Limits) => Effect.Effect<Allowance, RateLimitError>
  }
>()("castellan/RateLimit") {}
