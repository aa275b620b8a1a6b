import * as Effect from "effect/Effect"

/**
 * The event loop has one thread for all requests: a long computation delays timers, sockets and every other request.
 * Fibers yield between steps, not within them. Loops whose size a caller or a node chooses use `map` or `each`, which
 * let the event loop turn between two elements.
 */

/** Time that such loops run before the event loop turns, milliseconds. One more element may follow. */
export const sliceMillis = 5

/** When the current turn of the event loop began to work for us; null: it has not. */
let began: number | null = null

/** Runs the task when the event loop has turned. */
export const afterTurn = (task: () => void): void => {
  // Browsers have no setImmediate; a timer is slower there, and as fair.
  if (typeof globalThis.setImmediate === "function") globalThis.setImmediate(task)
  else globalThis.setTimeout(task, 0)
}

const isSpent = (): boolean => {
  const now = performance.now()
  if (began !== null) return now - began > sliceMillis
  began = now
  afterTurn(() => {
    began = null
  })
  return false
}

const turn = Effect.callback<void>((resume) => afterTurn(() => resume(Effect.void)))

/** Lets the event loop turn this often, whatever it has to do. */
export const turns = (count: number): Effect.Effect<void> =>
  count === 0 ? Effect.void : Effect.flatMap(turn, () => turns(count - 1))

/** Lets the event loop turn while the slice of time is used up; concurrent waiters share the next slices. */
export const breathe: Effect.Effect<void> = Effect.suspend(() =>
  isSpent() ? Effect.andThen(turn, breathe) : Effect.void
)

/** `items.map(one)`, in slices. */
export const map = <A, B>(
  items: ReadonlyArray<A>,
  one: (item: A, index: number) => B
): Effect.Effect<ReadonlyArray<B>> =>
  Effect.suspend(() => {
    const results: Array<B> = []
    const nextSlice: Effect.Effect<ReadonlyArray<B>> = Effect.suspend(() => {
      for (let at = results.length; at < items.length; at += 1) {
        if (isSpent()) return Effect.andThen(turn, nextSlice)
        results.push(one(items[at] as A, at))
      }
      return Effect.succeed(results)
    })
    return nextSlice
  })

/** Runs sequentially, with turns of the event loop in between. */
export const each = <A, B, E, R>(
  items: ReadonlyArray<A>,
  one: (item: A, index: number) => Effect.Effect<B, E, R>
): Effect.Effect<ReadonlyArray<B>, E, R> =>
  Effect.forEach(items, (item, index) => Effect.andThen(breathe, one(item, index)))
