import * as Work from "./Work.js"

/**
 * Measures how long this process holds its event loop, in milliseconds of CPU time between two turns of the loop.
 * Other load on the machine lengthens turns but adds no CPU time.
 */
export interface LoopMonitor {
  /** The longest hold since the previous call, in milliseconds. */
  readonly longest: () => number
  readonly stop: () => void
}

/** CPU time to parse `names` into fresh memory on a slow but normal machine, in milliseconds. */
const usualMillis = 30
/** Upper limit of the machine's cost factor: a hold beyond this multiple of the bound fails on any machine. */
const dearest = 4
const names = JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`a${n}`, 1])))

/**
 * Cost factor of fresh memory on this machine, from 1 to `dearest`. A virtual machine whose host reclaims unused pages
 * pays up to ten times as much to touch them again, and the thread's CPU time includes that cost.
 */
const dearness = (): number => {
  const costs = Array.from({ length: 5 }, () => Work.of(() => void JSON.parse(names)))
  return Math.min(Math.max(1, Math.min(...costs) / usualMillis), dearest)
}

/** A hold beyond the bound, in milliseconds, scaled to a machine with the usual memory cost. */
export const asUsual = (most: number, millis: number): number =>
  millis < most ? millis : millis / dearness()

/**
 * The least of up to five attempts: a result beyond the bound is retried four times. A cold compiler or a shared
 * processor delays some attempts; real work delays all. A result still beyond the bound is scaled by `asUsual`.
 */
export const leastOf = async <A extends { readonly longest: number }>(
  most: number,
  run: () => Promise<A>
): Promise<A> => {
  let least = await run()
  for (let again = 0; again < 4 && least.longest >= most; again++) {
    const next = await run()
    if (next.longest < least.longest) least = next
  }
  return { ...least, longest: asUsual(most, least.longest) }
}

export const start = (): LoopMonitor => {
  let longest = 0
  let running = true
  let wall = performance.now()
  let work = Work.soFar()
  const measure = (): void => {
    const now = performance.now()
    const done = Work.soFar()
    longest = Math.max(longest, Math.min(now - wall, done - work))
    wall = now
    work = done
  }
  const look = (): void => {
    if (!running) return
    measure()
    setImmediate(look)
  }
  setImmediate(look)
  return {
    longest: () => {
      const held = longest
      longest = 0
      return held
    },
    // Work done in the turn that calls `stop` counts.
    stop: () => {
      measure()
      running = false
    }
  }
}
