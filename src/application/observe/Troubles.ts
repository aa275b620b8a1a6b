import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as MonotonicTime from "../runtime/MonotonicTime.js"

/**
 * Tells of what fails again and again, by loops that never give up: once for each place and cause, then at growing
 * intervals as long as it lasts, then that it is over. An outage of a minute makes a few lines, however much work waits for
 * its end.
 */
export interface Troubles {
  /** `what` failed at the place; `subject`: for this one of those that are worked on there. */
  readonly failed: (trouble: Trouble, cause: Cause.Cause<unknown>) => Effect.Effect<void>
  /** It did not fail this time. Over is what fails for no subject any more. */
  readonly passed: (trouble: Trouble) => Effect.Effect<void>
}

export interface Trouble {
  /** The line of the log. */
  readonly what: string
  readonly place: string
  readonly subject?: string
  /** It only delays: a warning. Default: an error. */
  readonly isDelay?: boolean
}

/** The least time between two lines of one trouble: at first, and at most, milliseconds. */
const intervals = { first: 60_000, longest: 3_600_000 }

/** A subject of which nothing was heard for so long is not worked on here any more. */
const unheardMillis = 600_000

interface Standing {
  readonly reason: string
  /** When each of those for which it fails did so last. */
  readonly subjects: Map<string, number>
  readonly since: number
  times: number
  untold: number
  interval: number
  tellAt: number
}

/** What tells one cause from another: without the numbers and hashes in it. */
const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const failure = Option.getOrElse(Cause.failureOption(cause), () => Cause.squash(cause))
  const text = failure instanceof Error ? failure.message : String(failure)
  return text.replace(/0x[0-9a-f]+|[0-9]+/gi, "#")
}

export const make = (): Troubles => {
  /** By what and place, by reason. */
  const standing = new Map<string, Map<string, Standing>>()
  const nameOf = ({ place, what }: Trouble): string => `${what} ${place}`

  const prune = (trouble: Standing, now: number): void => {
    for (const [subject, at] of trouble.subjects)
      if (at + unheardMillis < now) trouble.subjects.delete(subject)
  }

  return {
    failed: (trouble, cause) =>
      Effect.gen(function* () {
        const now = yield* MonotonicTime.millis
        const reason = reasonOf(cause)
        const here = standing.get(nameOf(trouble)) ?? new Map<string, Standing>()
        standing.set(nameOf(trouble), here)
        const fresh = { reason, subjects: new Map<string, number>(), since: now, times: 0, untold: 0 }
        const known = here.get(reason) ?? { ...fresh, interval: intervals.first, tellAt: now }
        here.set(reason, known)
        known.subjects.set(trouble.subject ?? "", now)
        known.times += 1
        known.untold += 1
        if (now < known.tellAt) return
        const { times, untold } = known
        known.tellAt = now + known.interval
        known.interval = Math.min(known.interval * 2, intervals.longest)
        known.untold = 0
        const log = trouble.isDelay === true ? Effect.logWarning : Effect.logError
        yield* Effect.annotateLogs(log(trouble.what, cause), times === 1 ? {} : { times, untold })
      }),
    passed: (trouble) =>
      Effect.suspend(() => {
        const here = standing.get(nameOf(trouble))
        return here === undefined ? Effect.void : settle(trouble, here)
      })
  }

  function settle(trouble: Trouble, here: Map<string, Standing>): Effect.Effect<void> {
    return Effect.gen(function* () {
      const now = yield* MonotonicTime.millis
      for (const known of [...here.values()]) {
        known.subjects.delete(trouble.subject ?? "")
        prune(known, now)
        if (known.subjects.size > 0) continue
        here.delete(known.reason)
        const seconds = Math.round((now - known.since) / 1_000)
        yield* Effect.annotateLogs(Effect.logInfo(`over: ${trouble.what}`), { times: known.times, seconds })
      }
      if (here.size === 0) standing.delete(nameOf(trouble))
    })
  }
}
