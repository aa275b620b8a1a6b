import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"

/**
 * Wakes requests that wait for nonce keys or money of others: something was settled, abandoned or released.
 * Every waiter then looks at the journal again, so a wake-up too many does no harm.
 */
export interface Releases {
  readonly signal: Effect.Effect<void>
  /** Waits for the next signal, at most until `deadlineMillis`; false when that has passed. */
  readonly wait: (deadlineMillis: number) => Effect.Effect<boolean>
}

/** Leases of a crashed request end by time alone, without a signal: look again at least this often. */
const recheckMillis = 1_000

export const make: Effect.Effect<Releases> = Effect.sync(() => {
  let gate = Deferred.unsafeMake<void>(FiberId.none)
  return {
    signal: Effect.suspend(() => {
      const opened = gate
      gate = Deferred.unsafeMake<void>(FiberId.none)
      return Effect.asVoid(Deferred.succeed(opened, undefined))
    }),
    wait: (deadlineMillis) =>
      Effect.gen(function* () {
        const left = deadlineMillis - (yield* Clock.currentTimeMillis)
        if (left <= 0) return false
        yield* Effect.raceFirst(Deferred.await(gate), Effect.sleep(Math.min(left, recheckMillis)))
        return true
      })
  }
})
