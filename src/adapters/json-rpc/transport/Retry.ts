import * as Duration from "effect/Duration"
import * as Schedule from "effect/Schedule"

/** How often reads are repeated. The first wait is `baseMillis`, then each is longer, up to `maxMillis`, jittered. */
export interface Retry {
  readonly baseMillis: number
  readonly maxMillis: number
  /** No wait begins later than this after the first attempt, and none is longer. */
  readonly withinMillis: number
  /** Attempts beyond the first while the node limits the rate. */
  readonly rateLimited: number
  /** Attempts beyond the first when the connection was refused or cut, or a gateway stood in for the node. */
  readonly unreachable: number
  /** Attempts beyond the first while a node behind a balancer has not seen the block that another one told. */
  readonly behind: number
}

/** The waits between attempts; the node's own wish lengthens them. */
export const waits = (retry: Retry) =>
  Schedule.exponential(retry.baseMillis, 1.6).pipe(
    (self) => Schedule.min([self, Schedule.spaced(retry.maxMillis)]),
    Schedule.jitteredWith({ min: 0.5, max: 1.5 }),
    (self) => Schedule.max([self, Schedule.identity<{ readonly afterMillis: number }>()]),
    Schedule.modifyDelay(([, { afterMillis }], wait) => Duration.max(wait, Duration.millis(afterMillis))),
    Schedule.upTo({ duration: retry.withinMillis })
  )
