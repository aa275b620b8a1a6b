import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AccountId } from "../../application/ports/Accounts.js"
import { type Allowance, limits, RateLimit } from "../../application/ports/RateLimit.js"

/** The counts of the current window. All accounts share its bounds, so that one replacement evicts all old counts. */
class Window {
  private begins = Number.NaN
  private counts = new Map<AccountId, number>()
  constructor(readonly millis: number) {}

  /** Requests counted in the window of that time; another window than before begins with none. */
  counted(account: AccountId, now: number): number {
    const begins = now - (now % this.millis)
    if (begins !== this.begins) {
      this.begins = begins
      this.counts = new Map()
    }
    return this.counts.get(account) ?? 0
  }

  count(account: AccountId): void {
    this.counts.set(account, (this.counts.get(account) ?? 0) + 1)
  }

  resetSeconds(now: number): number {
    return Math.ceil((this.begins + this.millis - now) / 1_000)
  }
}

/**
 * Counts in this process only. Windows begin at full UTC minutes and hours; accounts that were silent for an hour take
 * no memory.
 */
export const make: Effect.Effect<Context.Tag.Service<typeof RateLimit>> = Effect.sync(() => {
  const minute = new Window(60_000)
  const hour = new Window(3_600_000)
  return {
    take: (account, tier) =>
      Effect.map(Clock.currentTimeMillis, (now): Allowance => {
        const left = {
          minute: limits[tier].minute - minute.counted(account, now),
          hour: limits[tier].hour - hour.counted(account, now)
        }
        // The hour binds when it leaves no more than the minute does: it stays closed for longer.
        const binding =
          left.hour <= left.minute || left.hour <= 0
            ? { window: hour, limit: limits[tier].hour, left: left.hour }
            : { window: minute, limit: limits[tier].minute, left: left.minute }
        const allowed = binding.left > 0
        if (allowed) {
          minute.count(account)
          hour.count(account)
        }
        return {
          allowed,
          limit: binding.limit,
          remaining: Math.max(0, allowed ? binding.left - 1 : 0),
          resetSeconds: binding.window.resetSeconds(now)
        }
      })
  }
})

export const layer: Layer.Layer<RateLimit> = Layer.effect(RateLimit, make)
