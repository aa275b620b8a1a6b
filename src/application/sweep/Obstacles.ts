import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Metrics from "../observe/Metrics.js"
import * as Troubles from "../observe/Troubles.js"
import * as StoreFailure from "../request/StoreFailure.js"
import * as Backoff from "../runtime/Backoff.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"

/** Pauses before something that could not be taken up is tried again. */
const backoff: Backoff.Backoff = { firstMillis: 2_000, longestMillis: 60_000 }

/** What could not be taken up: each is tried again later, and later each time. */
export interface Obstacles {
  /** Runs the effect unless it failed a short while ago; what fails is counted as long as it fails, and logged once for each cause. */
  readonly past: <R>(name: string, effect: Effect.Effect<void, Obstacle, R>) => Effect.Effect<void, never, R>
  /** Counts what is not to be taken up any more (cancelled, expired, another process's) no longer. */
  readonly forgetUnseen: Effect.Effect<void>
}

/** What no sweep has tried, or put off, for so long is not to be taken up here any more. */
const unseenMillis = 60_000

interface Known {
  readonly failures: number
  readonly until: number
  readonly seenAt: number
}

/** What is in the way of one may be in the way of all of a kind: a request, a transaction, an op, a lane. */
const troubleOf = (name: string) => {
  const [kind = ""] = name.split(" ")
  return {
    what: "work in the journal cannot be taken up and is tried again later",
    place: kind,
    subject: name
  }
}

/** Whether all that is in the way goes by itself. */
const isDelay = (cause: Cause.Cause<Obstacle>): boolean =>
  cause.reasons.every((reason) =>
    Cause.isFailReason(reason)
      ? reason.error.passes
      : Cause.isInterruptReason(reason) || StoreFailure.is(reason.defect)
  )

export const make = (): Obstacles => {
  const troubles = Troubles.make()
  const known = new Map<string, Known>()
  const tell = Effect.suspend(() => Metric.update(Metrics.workStranded, known.size))
  return {
    past: (name, effect) =>
      Effect.gen(function* () {
        const now = yield* MonotonicTime.millis
        const before = known.get(name)
        if (before !== undefined && before.until > now) {
          known.set(name, { ...before, seenAt: now })
          return
        }
        const outcome = yield* Effect.exit(effect)
        if (Exit.isSuccess(outcome) || Cause.hasInterruptsOnly(outcome.cause)) {
          known.delete(name)
          yield* troubles.passed(troubleOf(name))
        } else {
          const failures = (before?.failures ?? 0) + 1
          known.set(name, { failures, until: now + Backoff.pauseMillis(backoff, failures), seenAt: now })
          const trouble = { ...troubleOf(name), isDelay: isDelay(outcome.cause) }
          yield* Effect.annotateLogs(troubles.failed(trouble, outcome.cause), { work: name })
        }
        yield* tell
      }),
    forgetUnseen: Effect.gen(function* () {
      const since = (yield* MonotonicTime.millis) - unseenMillis
      for (const [name, { seenAt }] of known)
        if (seenAt < since) {
          known.delete(name)
          yield* troubles.passed(troubleOf(name))
        }
      yield* tell
    })
  }
}

/** Why something in the journal cannot be taken up. `passes`: what is in the way goes without the operator. */
export class Obstacle extends Data.TaggedError("Obstacle")<{
  readonly message: string
  readonly passes: boolean
}> {}

/** In the way until the operator takes it away. */
export const of = (message: string) => new Obstacle({ message, passes: false })

/** In the way until a node, a key or a store answers again, or the chain goes on. */
export const passing = (message: string) => new Obstacle({ message, passes: true })
