import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** A larger distance from a chain's time or from the confirmed time, or a larger change, makes the clock doubtful. */
export const toleratedMillis = 3_600_000

/**
 * Result of the clock's latest check. `asking`: the chains are being queried. `unanswered`: none has answered. `trusted`: it
 * is near the chains' time, or the operator has confirmed it. `doubted`: neither. `exempt`: nothing checks it.
 */
export type Standing = "asking" | "unanswered" | "trusted" | "doubted" | "exempt"

/** Whether the clock is good enough to delete or expire something by its age. Default: always. */
export const ClockTrust = Context.Reference<Trust>("castellan/ClockTrust", {
  defaultValue: (): Trust => ({
    mayDelete: Effect.succeed(true),
    mayExpire: Effect.succeed(true),
    become: () => Effect.void,
    wasSet: Effect.succeed(false)
  })
})

export interface Trust {
  /** Whether expired retention may delete data. A deletion can wait until a chain answers. */
  readonly mayDelete: Effect.Effect<boolean>
  /** Whether pending work may expire at its deadline. */
  readonly mayExpire: Effect.Effect<boolean>
  readonly become: (standing: Standing) => Effect.Effect<void>
  /** Whether the clock was set since the latest check, by more than is tolerated. */
  readonly wasSet: Effect.Effect<boolean>
}

/** The wall clock's time at the zero of the monotonic clock: it changes only when the wall clock is set. */
const origin = Effect.zipWith(
  Clock.currentTimeMillis,
  Clock.monotonicTimeNanos,
  (wall, nanos) => wall - Number(nanos) / 1e6
)

export const make = (): Trust => {
  let standing: Standing = "asking"
  let checked: number | null = null
  const wasSet = Effect.map(origin, (now) => checked !== null && Math.abs(now - checked) > toleratedMillis)
  // A deletion may come before the next check.
  const among = (...standings: ReadonlyArray<Standing>) =>
    Effect.map(wasSet, (isSet) => standing === "exempt" || (!isSet && standings.includes(standing)))
  return {
    mayDelete: among("trusted"),
    mayExpire: among("trusted", "unanswered"),
    become: (next) =>
      Effect.map(origin, (now) => {
        standing = next
        checked = now
      }),
    wasSet
  }
}
