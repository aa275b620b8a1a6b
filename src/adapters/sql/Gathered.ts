import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

/** Most that share a transaction. */
const most = 64

/** Transactions at a time: while one of them waits for a lock, what comes is done by another. */
const mostTransactions = 2

interface Waiting<Item, Done, E> {
  readonly item: Item
  readonly fiber: Fiber.Fiber<unknown, unknown>
  readonly resume: (done: Effect.Effect<Done, E>) => void
  /** Whoever was interrupted is let go when the transaction with his item is over; null: it is. */
  leave: (() => void) | null
}

/** Runs the effect on a fiber of its own with all that the other one has. */
const beside = <A, E>(fiber: Fiber.Fiber<unknown, unknown>, effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> =>
  Effect.runForkWith(fiber.context)(effect)

/**
 * A method of which many calls may share a transaction: those that come while as many as may be are under way are in the
 * next one. `together` gives what came of each item, in their order; where it fails, each is tried apart, so that none
 * fails for another one. A lone call waits for nobody.
 */
export const make = <Item, Done, E>(
  together: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Effect.Effect<Done, E>>, E>
): ((item: Item) => Effect.Effect<Done, E>) => {
  const waiting: Array<Waiting<Item, Done, E>> = []
  let transactions = 0

  const doneOf = (all: ReadonlyArray<Effect.Effect<Done, E>>, place: number): Effect.Effect<Done, E> =>
    all[place] ?? Effect.die(new Error("an item without an answer"))

  // At once: where there is no database, none waits until the others have waited for it.
  const apart = (items: ReadonlyArray<Item>) =>
    Effect.forEach(items, (item) => Effect.exit(Effect.flatMap(together([item]), (all) => doneOf(all, 0))), {
      concurrency: "unbounded"
    })

  const begin = (): void => {
    const batch = waiting.splice(0, most)
    const [first] = batch
    if (first === undefined) return
    transactions += 1
    const items = batch.map(({ item }) => item)
    const all = items.length === 1 ? together(items) : Effect.catch(together(items), () => apart(items))
    beside(first.fiber, Effect.exit(all)).addObserver((ended) => {
      transactions -= 1
      for (const [place, each] of batch.entries()) {
        each.resume(Effect.flatMap(Effect.flatten(ended), (done) => doneOf(done, place)))
        each.leave?.()
        each.leave = null
      }
      begin()
    })
  }

  return (item) =>
    Effect.withFiber((fiber) =>
      Effect.callback((resume) => {
        const own: Waiting<Item, Done, E> = { item, fiber, resume, leave: () => undefined }
        waiting.push(own)
        if (transactions < mostTransactions) begin()
        return Effect.callback<void>((left) => {
          const at = waiting.indexOf(own)
          if (at >= 0) waiting.splice(at, 1)
          if (at >= 0 || own.leave === null) left(Effect.void)
          else own.leave = () => left(Effect.void)
        })
      })
    )
}
