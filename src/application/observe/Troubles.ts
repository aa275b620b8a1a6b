import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as MonotonicTime from "../runtime/MonotonicTime.js"

/**
 * Tells of what fails again and again, by loops that never give up: once for each place and cause, then at growing
 * intervals as long as it lasts, then that it is over. An outage of a minute makes a few lines, however much work waits for
 * its end.
 */
export interface Troubles {
  /** `what` failed at the place; `subject`: for this one of those that are worked on there. Without a cause `what` says it all. */
  readonly failed: (trouble: Trouble, cause?: Cause.Cause<unknown>) => Effect.Effect<void>
  /** It did not fail this time. Over is what fails for no subject any more. */
  readonly passed: (trouble: Trouble) => Effect.Effect<void>
  /** Runs the effect, and tells how it ended: what fails is tried again by somebody else. */
  readonly tolerate: <R>(
    trouble: Trouble,
    effect: Effect.Effect<unknown, unknown, R>
  ) => Effect.Effect<void, never, R>
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

/** What fails again so soon after it was over is the same trouble: a node that comes and goes makes no two lines each time. */
const relapseMillis = 60_000

/** Causes of one trouble at one place that have lines of their own; what a node makes up anew each time shares one. */
const mostReasons = 16

interface Standing {
  readonly reason: string
  /** When each of those for which it fails did so last. */
  readonly subjects: Map<string, number>
  readonly since: number
  times: number
  untold: number
  interval: number
  tellAt: number
  /** Since when it fails for nobody; null: it does. */
  overAt: number | null
  /** Whether the line that it is over is owed. */
  owesEnd: boolean
}

/** As much of a text tells one cause from another. */
const mostText = 500

/** What tells one cause from another: without hashes, numbers, and names with a figure in them. */
const reasonOf = (cause: Cause.Cause<unknown> | undefined): string => {
  if (cause === undefined) return ""
  const failure = Option.getOrElse(Cause.findErrorOption(cause), () => Cause.squash(cause))
  const text = failure instanceof Error ? failure.message : String(failure)
  return text.slice(0, mostText).replace(/[\w-]*[0-9][\w-]*/g, "#")
}

const nameOf = ({ place, what }: Trouble): string => `${what} ${place}`

/** Forgets for whom it failed long ago. */
const prune = ({ subjects }: Standing, now: number): void => {
  for (const [subject, at] of subjects) if (at + unheardMillis < now) subjects.delete(subject)
}

/** Whether it has nothing to do with what fails now. */
const isPast = (known: Standing, now: number): boolean => {
  prune(known, now)
  return known.subjects.size === 0 && (known.overAt === null || known.overAt + relapseMillis <= now)
}

export const make = (): Troubles => {
  /** By what and place, by reason. */
  const standing = new Map<string, Map<string, Standing>>()

  const forgetPast = (now: number): void => {
    for (const [name, here] of standing) {
      for (const known of here.values()) if (isPast(known, now)) here.delete(known.reason)
      if (here.size === 0) standing.delete(name)
    }
  }

  const begin = (name: string, reason: string, now: number): Standing => {
    forgetPast(now)
    const here = standing.get(name) ?? new Map<string, Standing>()
    standing.set(name, here)
    const own = here.size < mostReasons ? reason : "another"
    const fresh = here.get(own) ?? {
      reason: own,
      subjects: new Map<string, number>(),
      since: now,
      times: 0,
      untold: 0,
      interval: intervals.first,
      tellAt: now,
      overAt: null,
      owesEnd: false
    }
    here.set(own, fresh)
    return fresh
  }

  const failed: Troubles["failed"] = (trouble, cause) =>
    Effect.gen(function* () {
      const now = yield* MonotonicTime.millis
      const name = nameOf(trouble)
      const reason = reasonOf(cause)
      const before = standing.get(name)?.get(reason)
      const known = before === undefined || isPast(before, now) ? begin(name, reason, now) : before
      known.subjects.set(trouble.subject ?? "", now)
      known.overAt = null
      known.times += 1
      known.untold += 1
      if (now < known.tellAt) return
      const { times, untold } = known
      known.tellAt = now + known.interval
      known.interval = Math.min(known.interval * 2, intervals.longest)
      known.untold = 0
      known.owesEnd = true
      const log = trouble.isDelay === true ? Effect.logWarning : Effect.logError
      yield* Effect.annotateLogs(
        cause === undefined ? log(trouble.what) : log(trouble.what, cause),
        times === 1 ? {} : { times, untold }
      )
    })

  const settle = Effect.fnUntraced(function* (trouble: Trouble, here: ReadonlyMap<string, Standing>) {
    const now = yield* MonotonicTime.millis
    for (const known of [...here.values()]) {
      known.subjects.delete(trouble.subject ?? "")
      prune(known, now)
      if (known.subjects.size > 0 || known.overAt !== null) continue
      known.overAt = now
      if (!known.owesEnd) continue
      known.owesEnd = false
      const seconds = Math.round((now - known.since) / 1_000)
      yield* Effect.annotateLogs(Effect.logInfo(`over: ${trouble.what}`), { times: known.times, seconds })
    }
    forgetPast(now)
  })

  const passed: Troubles["passed"] = (trouble) =>
    Effect.suspend(() => {
      const here = standing.get(nameOf(trouble))
      return here === undefined ? Effect.void : settle(trouble, here)
    })

  return {
    failed,
    passed,
    tolerate: (trouble, effect) =>
      Effect.matchCauseEffect(effect, {
        onFailure: (cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : failed(trouble, cause)),
        onSuccess: () => passed(trouble)
      })
  }
}

/** What parts tell by that keep nothing from one call to the next. */
export const Shared: Context.Reference<Troubles> = Context.Reference<Troubles>("castellan/Troubles", {
  defaultValue: make
})
