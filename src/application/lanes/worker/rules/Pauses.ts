/** Pauses after obstacles. An obstacle only delays: each one in a row doubles the pause. Pure. */

export interface Pause {
  /** In a row. */
  readonly obstacles: number
  /** By `MonotonicTime`, milliseconds. */
  readonly until: number
  readonly why: string
}

/** By paused key: the lane, a request or an op. */
export type Pauses<K> = ReadonlyMap<K, Pause>

const firstMillis = 100
const longestMillis = 30_000

/** Obstacles in a row after which the operator is notified, after about three seconds. */
export const reportedObstacles = 6

export const none = <K>(): Pauses<K> => new Map<K, Pause>()

export const pause = <K>(pauses: Pauses<K>, keys: Iterable<K>, why: string, now: number): Pauses<K> => {
  const next = new Map(pauses)
  for (const key of keys) {
    const obstacles = (pauses.get(key)?.obstacles ?? 0) + 1
    next.set(key, {
      obstacles,
      until: now + Math.min(firstMillis * 2 ** (obstacles - 1), longestMillis),
      why
    })
  }
  return next
}

export const end = <K>(pauses: Pauses<K>, keys: Iterable<K>): Pauses<K> => {
  const next = new Map(pauses)
  let isChanged = false
  for (const key of keys) isChanged = next.delete(key) || isChanged
  return isChanged ? next : pauses
}

export const isPaused = <K>(pauses: Pauses<K>, key: K, now: number): boolean =>
  (pauses.get(key)?.until ?? now) > now

/** End of the pause that ends next; null: none is left. */
export const nextEnd = <K>(pauses: Pauses<K>, now: number): number | null => {
  let next: number | null = null
  for (const { until } of pauses.values()) if (until > now && (next === null || until < next)) next = until
  return next
}
