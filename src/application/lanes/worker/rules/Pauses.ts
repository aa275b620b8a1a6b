import * as Backoff from "./Backoff.js"

/** What obstacles keep from going, and until when. An obstacle only delays: each further one doubles the pause. Pure. */

export interface Pause {
  /** In a row. */
  readonly obstacles: number
  /** By `MonotonicTime`, milliseconds. */
  readonly until: number
  /** What stood in the way at last. */
  readonly why: string
}

/** By what pauses: the lane as a whole, or an op. */
export type Pauses<K> = ReadonlyMap<K, Pause>

export const backoff: Backoff.Backoff = { firstMillis: 100, longestMillis: 30_000 }

/** Obstacles in a row from which on an operator hears of them: for three seconds something was in the way. */
export const worthTelling = 6

export const none = <K>(): Pauses<K> => new Map<K, Pause>()

export const paused = <K>(pauses: Pauses<K>, keys: Iterable<K>, why: string, now: number): Pauses<K> => {
  const next = new Map(pauses)
  for (const key of keys) {
    const obstacles = (pauses.get(key)?.obstacles ?? 0) + 1
    next.set(key, { obstacles, until: now + Backoff.pauseMillis(backoff, obstacles), why })
  }
  return next
}

/** Nothing is in their way any more. */
export const ended = <K>(pauses: Pauses<K>, keys: Iterable<K>): Pauses<K> => {
  const next = new Map(pauses)
  let isChanged = false
  for (const key of keys) isChanged = next.delete(key) || isChanged
  return isChanged ? next : pauses
}

export const isPaused = <K>(pauses: Pauses<K>, key: K, now: number): boolean =>
  (pauses.get(key)?.until ?? now) > now

/** When the first of them that are not over ends; null: none is left. */
export const nextEnd = <K>(pauses: Pauses<K>, now: number): number | null => {
  let next: number | null = null
  for (const { until } of pauses.values()) if (until > now && (next === null || until < next)) next = until
  return next
}
