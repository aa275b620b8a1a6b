import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"

/**
 * Wakes those who want to see something in the journal. Each then looks at the journal again, so a wake-up too many does no
 * harm. Waiters cost nothing while nothing happens: one poll of the journal serves all of them.
 */
export interface WakeUps {
  /** Something became of these requests (see `events` also). */
  readonly notify: (requestIds: Iterable<string>) => Effect.Effect<void>
  /** The journal has an event more: those who want to see events look at once, and whoever waits for `told`. */
  readonly tell: Effect.Effect<void>
  /** Waits until `tell`, or `notify`, was called since the last time. For one who waits. */
  readonly told: Effect.Effect<void>
  /** Looks until there is something to see (not null): at once, and again whenever something became of it. */
  readonly until: <A, E, R>(name: string, look: Effect.Effect<A | null, E, R>) => Effect.Effect<A, E, R>
}

export const WakeUps: Context.Key<WakeUps, WakeUps> = Context.Service("castellan/WakeUps")

/** Other processes write the same journal, without a wake-up here: it is asked for all waiters together this often. */
const pollMillis = 1_000
/** After a look for events that somebody was told of: at most so many of them are made. */
const betweenLooksMillis = 25
/** Waiters look for themselves as seldom as that: what no event told them. */
const recheckMillis = 30_000

interface Gate {
  opened: Deferred.Deferred<void>
  /** Of events: the newest that a look at the journal found. */
  newest: number | null
  waiters: number
}

const eventsPrefix = "events "

/** The name of a request's events, for those who want to see each of them and not the final answer alone. */
export const events = (requestId: string): string => eventsPrefix + requestId

const closed = () => Deferred.makeUnsafe<void>()

export const make = ({
  finalAmong,
  newestEvents
}: Pick<RequestJournal["Service"], "finalAmong" | "newestEvents">): Effect.Effect<
  WakeUps,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const gates = new Map<string, Gate>()
    const toldHere = yield* Queue.sliding<void>(1)
    const toldOthers = yield* Queue.sliding<void>(1)
    const tell = Effect.andThen(
      Queue.offer(toldHere, undefined),
      Effect.asVoid(Queue.offer(toldOthers, undefined))
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

    const open = (name: string): void => {
      const gate = gates.get(name)
      if (gate === undefined) return
      const { opened } = gate
      gate.opened = closed()
      Deferred.doneUnsafe(opened, Effect.void)
    }

    const notify: WakeUps["notify"] = (requestIds) =>
      Effect.suspend(() => {
        for (const requestId of requestIds) {
          open(requestId)
          open(events(requestId))
        }
        return Queue.offer(toldOthers, undefined)
      })

    const pollEvents = Effect.gen(function* () {
      const names = [...gates.keys()].filter((name) => name.startsWith(eventsPrefix))
      if (names.length === 0) return
      const newest = yield* newestEvents(names.map((name) => name.slice(eventsPrefix.length)))
      for (const [requestId, sequence] of newest) {
        const gate = gates.get(events(requestId))
        if (gate === undefined || gate.newest === sequence) continue
        gate.newest = sequence
        open(events(requestId))
      }
    })

    const until = <A, E, R>(name: string, look: Effect.Effect<A | null, E, R>): Effect.Effect<A, E, R> =>
      Effect.acquireUseRelease(
        enter(name),
        (gate) => {
          const again: Effect.Effect<A, E, R> = Effect.suspend(() => {
            // Taken before the look: what happens during it opens this one.
            const { opened } = gate
            return Effect.flatMap(look, (seen) =>
              seen === null
                ? Effect.andThen(Effect.raceFirst(Deferred.await(opened), Effect.sleep(recheckMillis)), again)
                : Effect.succeed(seen)
            )
          })
          return again
        },
        leave(name)
      )

    const poll = Effect.gen(function* () {
      const waitedFor = [...gates.keys()].filter((name) => !name.startsWith(eventsPrefix))
      if (waitedFor.length > 0) yield* notify(yield* finalAmong(waitedFor))
      yield* pollEvents
    })
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.andThen(
          Effect.sleep(pollMillis),
          Effect.catchCause(poll, (cause) => Effect.logDebug("the journal could not be polled", cause))
        )
      )
    )

    yield* Effect.forkScoped(
      Effect.forever(
        Queue.take(toldHere).pipe(
          Effect.andThen(Effect.ignoreCause(pollEvents, { log: "Debug" })),
          Effect.andThen(Effect.sleep(betweenLooksMillis))
        )
      )
    )

    return {
      tell,
      told: Queue.take(toldOthers),
      notify,
      until
    }
  })
