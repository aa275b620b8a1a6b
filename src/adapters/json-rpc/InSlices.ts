import * as Effect from "effect/Effect"
import type { Steps } from "../../domain/primitives/Steps.js"

/** How long work goes on, of all answers together, before the event loop turns. */
const sliceMillis = 5

/** Work that is under way; each goes on until it is done. */
const waiting: Array<() => boolean> = []
let turning = false

const slice = (): void => {
  const until = performance.now() + sliceMillis
  while (waiting.length > 0 && performance.now() < until) if (waiting[0]?.() === true) waiting.shift()
  turning = waiting.length > 0
  if (turning) setImmediate(slice)
}

const toItsEnd = <A>(running: Steps<A>): A => {
  for (;;) {
    const next = running.next()
    if (next.done === true) return next.value
  }
}

/** The result of long work: whoever else waits for the event loop has a turn in between. What is short is done at once. */
export const run = <A>(steps: () => Steps<A>, isShort = false): Effect.Effect<A> =>
  isShort ? Effect.sync(() => toItsEnd(steps())) : inTurns(steps)

const inTurns = <A>(steps: () => Steps<A>): Effect.Effect<A> =>
  Effect.callback((resume) => {
    const running = steps()
    let wanted = true
    waiting.push(() => {
      if (!wanted) return true
      try {
        const next = running.next()
        if (next.done === true) resume(Effect.succeed(next.value))
        return next.done === true
      } catch (error) {
        // All work of the process goes through one queue: it goes on without what throws.
        resume(Effect.die(error))
        return true
      }
    })
    if (!turning) {
      turning = true
      setImmediate(slice)
    }
    return Effect.sync(() => {
      wanted = false
    })
  })
