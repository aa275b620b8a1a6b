import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
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
export const waits = ({ baseMillis, maxMillis, withinMillis }: Retry) =>
  Schedule.exponential(baseMillis, 1.6).pipe(
    Schedule.modifyDelay(
      ({ duration, input }: Schedule.Metadata<unknown, { readonly afterMillis: number }>) =>
        Effect.map(Random.nextBetween(0.5, 1.5), (jitter) =>
          Math.max(Math.min(Duration.toMillis(duration), maxMillis) * jitter, input.afterMillis)
        )
    ),
    Schedule.upTo({ duration: withinMillis })
  )

/** Milliseconds from now, from either form of Retry-After (RFC 9110, 10.2.3); 0 when it is absent or senseless. */
export const afterMillis = (header: string | undefined, now: number): number => {
  if (header === undefined) return 0
  const wait = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now
  return Number.isFinite(wait) ? Math.max(0, wait) : 0
}
