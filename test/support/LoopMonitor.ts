import * as Work from "./Work.js"

/**
 * How long the event loop of this process is held at a time, in milliseconds of work: of the time between two of its
 * turns, what was spent computing. Other load of the machine makes turns longer, but no work.
 */
export interface LoopMonitor {
  /** The longest time since it was asked last. */
  readonly longest: () => number
  readonly stop: () => void
}

/** What fresh memory costs in JSON of so many distinct names, milliseconds, where it is dear but no more than usual. */
const usualMillis = 30
/** What is held for longer than that many times the bound is held for too long on any machine. */
const dearest = 4
const names = JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`a${n}`, 1])))

/**
 * How many times dearer than usual fresh memory is; at least 1, and at most `dearest`. A virtual machine whose host
 * takes unused pages back pays for each of them again when it is touched, ten times what it costs elsewhere, and the
 * thread's time counts that as work.
 */
const dearness = (): number => {
  const costs = Array.from({ length: 5 }, () => Work.of(() => void JSON.parse(names)))
  return Math.min(Math.max(1, Math.min(...costs) / usualMillis), dearest)
}

/** How long it was held, as it would be where memory costs what it usually does, if that is beyond the bound. */
export const asUsual = (most: number, millis: number): number =>
  millis < most ? millis : millis / dearness()

/**
 * What holds the loop by its own work does so every time. Beyond the bound it is tried four times more, and the least
 * counts: a cold compiler, and a processor that is shared with others, make the same work longer, some of the times. What
 * is beyond it even then is told `asUsual`.
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
    // What was done in the turn that ends with this belongs to it.
    stop: () => {
      measure()
      running = false
    }
  }
}
