import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/**
 * Accepted requests ask nodes a few at a time, those that were accepted first before the others: after a restart, or an
 * outage, there may be thousands, and a node that is asked for all of them at once answers none in time. Those that wait
 * come in together, many at a time: what is asked at one moment shares its questions.
 */

/** Accepted requests of one account on one chain that have their turn at once; as many looks share a call. */
export const most = 32

/** The turn of one request. */
export interface Turn {
  /** Waits for it; at once where the request has it. */
  readonly take: Effect.Effect<void>
  /** Somebody else's turn: the request waits for something else than a node's answer, or is over. */
  readonly leave: Effect.Effect<void>
}

/** `place`: whose turns are counted together; `since`: those with a lower one come first. Both are asked when it is taken. */
export type Turns = (place: () => string, since: () => number) => Turn

interface Waiter {
  readonly since: number
  readonly bell: Deferred.Deferred<void>
}

interface Queue {
  held: number
  /** In order of `since`. */
  readonly waiting: Array<Waiter>
}

export const make = (): Turns => {
  const queues = new Map<string, Queue>()

  const giveBack = (name: string): void => {
    const queue = queues.get(name)
    if (queue === undefined) return
    queue.held -= 1
    const next = queue.held <= most / 2 ? queue.waiting.splice(0, most - queue.held) : []
    queue.held += next.length
    if (queue.held === 0) queues.delete(name)
    // Who hears it goes on at once, and may leave, or wait again, before the next one hears it.
    for (const { bell } of next) Deferred.doneUnsafe(bell, Effect.void)
  }

  return (place, since) => {
    let held: string | null = null
    const leave = Effect.sync(() => {
      const name = held
      held = null
      if (name !== null) giveBack(name)
    })
    const take = Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        if (held !== null) return Effect.void
        const name = place()
        const queue = queues.get(name) ?? { held: 0, waiting: [] }
        queues.set(name, queue)
        if (queue.held < most && queue.waiting.length === 0) {
          queue.held += 1
          held = name
          return Effect.void
        }
        const waiter: Waiter = { since: since(), bell: Deferred.makeUnsafe() }
        const behind = queue.waiting.findIndex((other) => other.since > waiter.since)
        queue.waiting.splice(behind < 0 ? queue.waiting.length : behind, 0, waiter)
        return Effect.onInterrupt(restore(Deferred.await(waiter.bell)), () =>
          Effect.sync(() => {
            const at = queue.waiting.indexOf(waiter)
            // It may have been given its turn just now.
            if (at < 0) giveBack(name)
            else queue.waiting.splice(at, 1)
          })
        ).pipe(
          Effect.andThen(
            Effect.sync(() => {
              // Parts of one request may have waited for it beside each other.
              if (held === null) held = name
              else giveBack(name)
            })
          )
        )
      })
    )
    return { take, leave }
  }
}
