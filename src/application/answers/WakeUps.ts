import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"

/**
 * Wakes readers that wait for events in the journal. Each then reads the journal again, so a surplus wake-up does no
 * harm. One poll serves all readers.
 */
export interface WakeUps {
  /** The state of these requests has changed. */
  readonly notify: (requestIds: Iterable<string>) => Effect.Effect<void>
  /** The journal has a new event: readers of events read immediately, and so does the waiter of `changed`. */
  readonly notifyEvents: Effect.Effect<void>
  /** Waits for a `notifyEvents` or `notify` since the last call. For a single waiter. */
  readonly changed: Effect.Effect<void>
  /** Reads until the result is not null: immediately, and again after each change of the request. */
  readonly until: <A, E, R>(requestId: string, read: Effect.Effect<A | null, E, R>) => Effect.Effect<A, E, R>
}

export const WakeUps: Context.Key<WakeUps, WakeUps> = Context.Service("castellan/WakeUps")

/** Poll interval of the journal, which other processes write without a wake-up here. */
const pollMillis = 1_000
/** Least interval between reads of announced events. */
const readIntervalMillis = 25
/** Interval of the readers' own reads, for changes without an event. */
const recheckMillis = 30_000

interface Gate {
  opened: Deferred.Deferred<void>
  /** The newest event that a poll has found. */
  newest: number | null
  waiters: number
}

const closed = () => Deferred.makeUnsafe<void>()

export const make = ({
  newestEvents
}: Pick<RequestJournal["Service"], "newestEvents">): Effect.Effect<WakeUps, never, Scope.Scope> =>
  Effect.gen(function* () {
    const gates = new Map<string, Gate>()
    const readersDue = yield* Queue.sliding<void>(1)
    const waiterDue = yield* Queue.sliding<void>(1)
    const notifyEvents = Effect.andThen(
      Queue.offer(readersDue, undefined),
      Effect.asVoid(Queue.offer(waiterDue, undefined))
    )

    const enter = (requestId: string) =>
      Effect.sync(() => {
        const gate = gates.get(requestId) ?? { opened: closed(), newest: null, waiters: 0 }
        gate.waiters += 1
        gates.set(requestId, gate)
        return gate
      })
    const leave = (requestId: string) => (gate: Gate) =>
      Effect.sync(() => {
        gate.waiters -= 1
        if (gate.waiters === 0) gates.delete(requestId)
      })

    const open = (requestId: string): void => {
      const gate = gates.get(requestId)
      if (gate === undefined) return
      const { opened } = gate
      gate.opened = closed()
      Deferred.doneUnsafe(opened, Effect.void)
    }

    const notify: WakeUps["notify"] = (requestIds) =>
      Effect.suspend(() => {
        for (const requestId of requestIds) open(requestId)
        return Queue.offer(waiterDue, undefined)
      })

    const pollEvents = Effect.gen(function* () {
      if (gates.size === 0) return
      for (const [requestId, sequence] of yield* newestEvents([...gates.keys()])) {
        const gate = gates.get(requestId)
        if (gate === undefined || gate.newest === sequence) continue
        gate.newest = sequence
        open(requestId)
      }
    })

    const until = <A, E, R>(requestId: string, read: Effect.Effect<A | null, E, R>): Effect.Effect<A, E, R> =>
      Effect.acquireUseRelease(
        enter(requestId),
        (gate) => {
          const again: Effect.Effect<A, E, R> = Effect.suspend(() => {
            // Taken before the read: a change during the read opens this one.
            const { opened } = gate
            return Effect.flatMap(read, (seen) =>
              seen === null
                ? Effect.andThen(Effect.raceFirst(Deferred.await(opened), Effect.sleep(recheckMillis)), again)
                : Effect.succeed(seen)
            )
          })
          return again
        },
        leave(requestId)
      )

    yield* Effect.forkScoped(
      Effect.forever(
        Effect.raceFirst(Queue.take(readersDue), Effect.sleep(pollMillis)).pipe(
          Effect.andThen(Effect.ignoreCause(pollEvents, { log: "Debug", message: "journal poll failed" })),
          Effect.andThen(Effect.sleep(readIntervalMillis))
        )
      )
    )

    return {
      notifyEvents,
      changed: Queue.take(waiterDue),
      notify,
      until
    }
  })
