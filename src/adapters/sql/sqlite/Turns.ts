/** Work on one connection, one after the other, in the order in which it was asked for. */
export interface Turns {
  readonly isFree: () => boolean
  /** Begins the work when its turn has come; nobody else's begins before `release`. Gives what takes it back before. */
  readonly take: (work: () => void) => () => void
  readonly release: () => void
}

export const make = (): Turns => {
  const waiting = new Set<() => void>()
  let held = false
  let passing = false

  /** In a loop: work that is done at once would begin the next one from within itself. */
  const pass = (): void => {
    if (passing) return
    passing = true
    for (const work of waiting) {
      if (held) break
      waiting.delete(work)
      held = true
      work()
    }
    passing = false
  }

  return {
    isFree: () => !held && waiting.size === 0,
    take: (work) => {
      const own = () => work()
      waiting.add(own)
      pass()
      return () => void waiting.delete(own)
    },
    release: () => {
      held = false
      pass()
    }
  }
}
