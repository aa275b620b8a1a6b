import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"

/**
 * Wakes requests that wait for something in the journal. Every waiter then looks at the journal again, so a wake-up
 * too many does no harm.
 */
export interface WakeUps {
  /** Nonce keys or money of some wallet were released. */
  readonly signal: Effect.Effect<void>
  /** Waits for the next `signal`, at most until `deadlineMillis`; false when that has passed. */
  readonly wait: (deadlineMillis: number) => Effect.Effect<boolean>
  /** Something became of these requests. */
  readonly notify: (requestIds: Iterable<string>) => Effect.Effect<void>
  /** Looks until there is something to see (not null): at once, and again whenever something became of the request. */
  readonly until: <A, E, R>(requestId: string, look: Effect.Effect<A | null, E, R>) => Effect.Effect<A, E, R>
}

export const WakeUps: Context.Tag<WakeUps, WakeUps> = Context.GenericTag("castellan/WakeUps")

/** Other processes write the same journal, without a signal: look again at least this often. */
const recheckMillis = 1_000

interface Gate {
  opened: Deferred.Deferred<void>
  waiters: number
}

const closed = () => Deferred.unsafeMake<void>(FiberId.none)

export const make: Effect.Effect<WakeUps> = Effect.sync(() => {
  let everybody = closed()
  const gates = new Map<string, Gate>()

  const enter = (requestId: string) =>
    Effect.sync(() => {
      const gate = gates.get(requestId) ?? { opened: closed(), waiters: 0 }
      gate.waiters += 1
      gates.set(requestId, gate)
      return gate
    })
  const leave = (requestId: string) => (gate: Gate) =>
    Effect.sync(() => {
      gate.waiters -= 1
      if (gate.waiters === 0) gates.delete(requestId)
    })

  return {
    signal: Effect.suspend(() => {
      const opened = everybody
      everybody = closed()
      return Effect.asVoid(Deferred.succeed(opened, undefined))
    }),
    wait: (deadlineMillis) =>
      Effect.gen(function* () {
        const left = deadlineMillis - (yield* Clock.currentTimeMillis)
        if (left <= 0) return false
        yield* Effect.raceFirst(Deferred.await(everybody), Effect.sleep(Math.min(left, recheckMillis)))
        return true
      }),
    notify: (requestIds) =>
      Effect.forEach(
        requestIds,
        (requestId) =>
          Effect.suspend(() => {
            const gate = gates.get(requestId)
            if (gate === undefined) return Effect.void
            const { opened } = gate
            gate.opened = closed()
            return Deferred.succeed(opened, undefined)
          }),
        { discard: true }
      ),
    until: <A, E, R>(requestId: string, look: Effect.Effect<A | null, E, R>) =>
      Effect.acquireUseRelease(
        enter(requestId),
        (gate) => {
          const again: Effect.Effect<A, E, R> = Effect.suspend(() => {
            // Taken before the look: what happens during it opens this one.
            const { opened } = gate
            return Effect.flatMap(look, (seen) =>
              seen === null
                ? Effect.zipRight(
                    Effect.raceFirst(Deferred.await(opened), Effect.sleep(recheckMillis)),
                    again
                  )
                : Effect.succeed(seen)
            )
          })
          return again
        },
        leave(requestId)
      )
  }
})
