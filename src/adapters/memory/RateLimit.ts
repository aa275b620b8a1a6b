import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { allowance, beginsAt, RateLimit, type windowMillis } from "../../application/ports/RateLimit.js"
import type { AccountId } from "../../application/ports/Tenants.js"

/** Counts of the current window. All accounts share its bounds, so one replacement evicts all old counts. */
class Window {
  private begins = Number.NaN
  private counts = new Map<AccountId, number>()
  constructor(readonly kind: keyof typeof windowMillis) {}

  /** Requests counted in the window at `now`; a new window starts at zero. */
  counted(account: AccountId, now: number): number {
    const begins = beginsAt(this.kind, now)
    if (begins !== this.begins) {
      this.begins = begins
      this.counts = new Map()
    }
    return this.counts.get(account) ?? 0
  }

  count(account: AccountId): void {
    this.counts.set(account, (this.counts.get(account) ?? 0) + 1)
  }
}

/** Counts in this process only. Accounts silent for an hour use no memory. */
export const make: Effect.Effect<RateLimit["Service"]> = Effect.sync(() => {
  const minute = new Window("minute")
  const hour = new Window("hour")
  return {
    take: (account, limits) =>
      Clock.clockWith((clock) => {
        const now = clock.currentTimeMillisUnsafe()
        const counted = { minute: minute.counted(account, now), hour: hour.counted(account, now) }
        const result = allowance(limits, counted, now)
        if (result.allowed) {
          minute.count(account)
          hour.count(account)
        }
        return Effect.succeed(result)
      })
  }
})

/** Counts the requests of this process, as the port `RateLimit`: not for several processes. */
export const layer: Layer.Layer<RateLimit> = Layer.effect(RateLimit, make)
