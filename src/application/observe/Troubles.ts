import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as MonotonicTime from "../runtime/MonotonicTime.js"

/**
 * Logs repeated failures of loops that never stop: once per place and cause, then at growing intervals while the
 * failure lasts, then its end. An outage of a minute makes a few lines, however much work waits for its end.
 */
export interface Troubles {
  /** `what` failed at the place, for `subject` if given. Without a cause `what` is the whole message. */
  readonly failed: (trouble: Trouble, cause?: Cause.Cause<unknown>) => Effect.Effect<void>
  /** It did not fail this time. The trouble is over when it fails for no subject any more. */
  readonly passed: (trouble: Trouble) => Effect.Effect<void>
  /** Runs the effect, and logs its failure or end; the caller retries. */
  readonly tolerate: <R>(
    trouble: Trouble,
    effect: Effect.Effect<unknown, unknown, R>
  ) => Effect.Effect<void, never, R>
}

export interface Trouble {
  readonly what: string
  readonly place: string
  readonly subject?: string
  /** It only delays: a warning. Default: an error. */
  readonly isDelay?: boolean
}

/** Least time between two lines of one trouble: first, and longest, milliseconds. */
const intervals = { first: 60_000, longest: 3_600_000 }

/** A subject without a report for this time is no longer worked on here. */
const forgottenMillis = 600_000

/** A failure this soon after the end continues the same trouble: a flapping node does not make two lines each time. */
const relapseMillis = 60_000

/** Most causes of one trouble with separate lines; a node may word each failure differently. */
const mostReasons = 16

interface Standing {
  readonly reason: string
  /** Time of the last failure of each failing subject. */
  readonly subjects: Map<string, number>
  readonly since: number
  times: number
  suppressed: number
  interval: number
  nextLineAt: number
  /** When the last subject recovered; null: some still fail. */
  overAt: number | null
  /** Whether the end must still be logged. */
  owesEnd: boolean
}

const mostText = 500

/** The part of a cause that identifies it: without hashes, numbers, and names that contain a digit. */
const reasonOf = (cause: Cause.Cause<unknown> | undefined): string => {
  if (cause === undefined) return ""
  const failure = Option.getOrElse(Cause.findErrorOption(cause), () => Cause.squash(cause))
  const text = failure instanceof Error ? failure.message : String(failure)
  return text.slice(0, mostText).replace(/[\w-]*[0-9][\w-]*/g, "#")
}

const nameOf = ({ place, what }: Trouble): string => `${what} ${place}`

/** Forgets subjects whose last failure is long ago. */
const prune = ({ subjects }: Standing, now: number): void => {
  for (const [subject, at] of subjects) if (at + forgottenMillis < now) subjects.delete(subject)
}

/** Whether a new failure is a new trouble. */
const isPast = (known: Standing, now: number): boolean => {
  prune(known, now)
  return known.subjects.size === 0 && (known.overAt === null || known.overAt + relapseMillis <= now)
}

export const make = (): Troubles => {
  /** By `what` and place, by reason. */
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
      suppressed: 0,
      interval: intervals.first,
      nextLineAt: now,
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
      known.suppressed += 1
      if (now < known.nextLineAt) return
      const { times, suppressed } = known
      known.nextLineAt = now + known.interval
      known.interval = Math.min(known.interval * 2, intervals.longest)
      known.suppressed = 0
      known.owesEnd = true
      const log = trouble.isDelay === true ? Effect.logWarning : Effect.logError
      yield* Effect.annotateLogs(
        cause === undefined ? log(trouble.what) : log(trouble.what, cause),
        times === 1 ? {} : { times, suppressed }
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

/** For code that keeps no state between calls. */
export const Shared: Context.Reference<Troubles> = Context.Reference<Troubles>("castellan/Troubles", {
  defaultValue: make
})
