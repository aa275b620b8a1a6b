import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Metrics from "../observe/Metrics.js"
import * as Backoff from "../runtime/Backoff.js"

/** Pauses before something that could not be taken up is tried again. */
const backoff: Backoff.Backoff = { firstMillis: 2_000, longestMillis: 60_000 }

/** What could not be taken up: each is tried again later, and later each time. */
export interface Obstacles {
  /** Runs the effect unless it failed a short while ago; what fails is logged, and counted as long as it fails. */
  readonly past: <R>(name: string, effect: Effect.Effect<void, Obstacle, R>) => Effect.Effect<void, never, R>
}

export const make = (): Obstacles => {
  const known = new Map<string, { readonly failures: number; readonly until: number }>()
  const tell = Effect.suspend(() => Metric.set(Metrics.workStranded, known.size))
  return {
    past: (name, effect) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const before = known.get(name)
        if (before !== undefined && before.until > now) return
        const outcome = yield* Effect.exit(effect)
        if (Exit.isSuccess(outcome) || Cause.isInterruptedOnly(outcome.cause)) known.delete(name)
        else {
          const failures = (before?.failures ?? 0) + 1
          known.set(name, { failures, until: now + Backoff.pauseMillis(backoff, failures) })
          yield* Effect.annotateLogs(
            Effect.logError("work in the journal cannot be taken up and is tried again later"),
            {
              work: name,
              reason: Option.match(Cause.failureOption(outcome.cause), {
                onNone: () => Cause.pretty(outcome.cause),
                onSome: ({ message }) => message
              })
            }
          )
        }
        yield* tell
      })
  }
}

/** Why something in the journal cannot be taken up. */
export class Obstacle extends Data.TaggedError("Obstacle")<{ readonly message: string }> {}

export const of = (message: string) => new Obstacle({ message })
