import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"

/** Retries of reads. The first wait is `baseMillis`; the waits grow up to `maxMillis`, with jitter. */
export interface Retry {
  readonly baseMillis: number
  readonly maxMillis: number
  /** No wait begins later than this after the first attempt, and none is longer. */
  readonly withinMillis: number
  /** Retries while the node limits the rate. */
  readonly rateLimited: number
  /** Retries after a refused or cut connection, or when a gateway answers for the node. */
  readonly unreachable: number
  /** Retries while a node behind a balancer lacks a block that another node announced. */
  readonly behind: number
}

/** Waits between attempts; a longer wait requested by the node wins. */
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

/** Milliseconds from now, from either form of Retry-After (RFC 9110, 10.2.3); 0 when it is absent or invalid. */
export const afterMillis = (header: string | undefined, now: number): number => {
  if (header === undefined) return 0
  const wait = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now
  return Number.isFinite(wait) ? Math.max(0, wait) : 0
}
