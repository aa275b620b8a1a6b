import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { AccountId, OwnLimits, Tier } from "./Tenants.js"

/** Requests per UTC minute and per UTC hour. */
export interface Limits {
  readonly minute: number
  readonly hour: number
}

/** Requests a minute and an hour by tier. */
export const limits: Readonly<Record<Tier, Limits>> = {
  free: { minute: 60, hour: 1_000 },
  pro: { minute: 300, hour: 10_000 },
  enterprise: { minute: 1_000, hour: 50_000 }
}

/** Highest limit that an account may be given. */
export const mostPerMinute = 1_000_000
/** Most requests an hour that an account may have. */
export const mostPerHour = 60 * mostPerMinute

/**
 * An account's limits: its own, or its tier's.
 *
 * @example RateLimit.limitsOf({ tier: "free", requestsPerMinute: 5, requestsPerHour: null })
 * // { minute: 5, hour: 1_000 }
 */
export const limitsOf = ({
  requestsPerHour,
  requestsPerMinute,
  tier
}: OwnLimits & { readonly tier: Tier }): Limits => ({
  minute: requestsPerMinute ?? limits[tier].minute,
  hour: requestsPerHour ?? limits[tier].hour
})

/** The window that binds first, after this request was counted or refused. */
export interface Allowance {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Seconds until the window restarts, at least 1. */
  readonly resetSeconds: number
}

/** Milliseconds. Windows begin at full UTC minutes and hours. */
export const windowMillis = { minute: 60_000, hour: 3_600_000 } as const

/**
 * The start of the window that contains `now`.
 *
 * @example RateLimit.beginsAt("minute", 61_000)
 * // 60000
 */
export const beginsAt = (window: keyof typeof windowMillis, now: number): number =>
  now - (now % windowMillis[window])

/**
 * Decides about a request at `now`, given the requests `counted` in the current windows.
 *
 * @example RateLimit.allowance(RateLimit.limits.free, { minute: 60, hour: 60 }, 0).allowed
 * // false
 */
export const allowance = (
  limits: Limits,
  counted: { readonly minute: number; readonly hour: number },
  now: number
): Allowance => {
  const left = { minute: limits.minute - counted.minute, hour: limits.hour - counted.hour }
  // The hour binds on a tie: it stays closed for longer.
  const binding = left.hour <= left.minute || left.hour <= 0 ? "hour" : "minute"
  const allowed = left[binding] > 0
  return {
    allowed,
    limit: limits[binding],
    remaining: allowed ? left[binding] - 1 : 0,
    resetSeconds: Math.ceil((beginsAt(binding, now) + windowMillis[binding] - now) / 1_000)
  }
}

/** The counters cannot be reached. */
export class RateLimitError extends Data.TaggedError("RateLimitError")<{ readonly message: string }> {}

/** Counts accounts' requests in fixed UTC windows. */
export class RateLimit extends Context.Service<
  RateLimit,
  {
    /** Counts one request; refused requests are not counted. */
    readonly take: (account: AccountId, limits: Limits) => Effect.Effect<Allowance, RateLimitError>
  }
>()("castellan/RateLimit") {}
