import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"

/**
 * Schedules polls for submitted transactions and ops: at the regular interval, and more often just after submission. Fast
 * chains show a submission long before the next regular poll; on slow chains extra polls would only cost. The chain's last
 * inclusion decides, and an unknown chain counts as fast. A poll before inclusion is a wasted call, and delays the poll that
 * shows it.
 */
export interface ReceiptSchedule {
  /** It may be visible before its first regular poll. */
  readonly isYoung: (given: Submission, now: number) => boolean
  /** It is young and, by the chain's last inclusion, not yet visible. */
  readonly isEarly: (given: Submission, now: number) => boolean
  /** A poll that began at `askedAt` showed it. */
  readonly seen: (given: Submission, askedAt: number) => void
  /** A poll that began at `askedAt` did not show it. */
  readonly missed: (given: Submission, askedAt: number) => void
  /** Waits for the next poll of any of them, at most for the interval. */
  readonly rest: (resting: Resting, intervalMillis: number, all: Iterable<Submission>) => Effect.Effect<void>
}

/** A transaction or op that was given to a node or bundler. */
export interface Submission {
  readonly chainId: bigint
  /** By `MonotonicTime`. */
  readonly givenAt: number
  /** Of the regular polls. */
  readonly intervalMillis: number
}

/** State of a poller between two rounds. */
export interface Resting {
  /** Time of the next poll of everything, by `MonotonicTime`. */
  regularAt: number
  /** Start of the last round. */
  roundAt: number
  /** Open: it does not rest. */
  readonly rest: Latch.Latch
}

const mostChains = 1_000
/** Latest first poll after submission, as part of the interval. Each further poll comes at twice the age. */
const firstPart = 1 / 16
/** First poll, as part of the age at which the chain's last submission was seen, if that is sooner. */
const lastPart = 3 / 4
/** Margin beyond the age of a poll that came too early, milliseconds: the earliest next first poll. */
const latenessMillis = 1.5
/** Submissions after a poll that came too early until an equally early poll is tried again. */
const mostCautious = 64
/** Timers may fire this much early, milliseconds: a round includes the polls due until then. */
const slackMillis = 1
/** Part of the interval. At a lower age the first regular poll, late on a busy machine, or a sooner poll showed the submission. */
const soonParts = 1.5

/** Whether the starting round polls everything; sets the next such round one interval later. */
export const isRegular = (resting: Resting, intervalMillis: number, now: number): boolean => {
  resting.roundAt = now
  // Also if a new submission has a shorter interval.
  const isDue = now >= resting.regularAt || resting.regularAt - now > intervalMillis
  if (isDue) resting.regularAt = now + intervalMillis
  return isDue
}

interface Last {
  /**
   * Age of its last submission at the poll that showed it, milliseconds, measured at the poll's start. Including the reply's
   * travel time, the first poll, at three quarters of the age, could never come sooner than three times that time.
   */
  readonly age: number
  /** Age at a poll that came too early, and the poll's time; applies to later submissions. */
  readonly early: { readonly age: number; readonly at: number } | null
  readonly count: number
}

export const make = (): ReceiptSchedule => {
  const chains = new Lru<bigint, Last>(mostChains)
  const lastOf = ({ chainId }: Submission): Last => chains.get(chainId) ?? { age: 0, early: null, count: 0 }

  const isYoung = (given: Submission, now: number): boolean =>
    now >= given.givenAt &&
    now - given.givenAt < given.intervalMillis &&
    lastOf(given).age < given.intervalMillis * soonParts

  const firstOf = (given: Submission): number => {
    const { age, early } = lastOf(given)
    const soonest = early === null || early.at >= given.givenAt ? 0 : early.age + latenessMillis
    return (
      given.givenAt +
      Math.min(Math.max(Math.floor(age * lastPart), soonest), given.intervalMillis * firstPart)
    )
  }

  /** The first poll that the last round did not cover. */
  const nextOf = (given: Submission, { roundAt }: Resting, now: number): number => {
    if (!isYoung(given, now)) return Number.POSITIVE_INFINITY
    const first = firstOf(given)
    const had = roundAt + slackMillis
    if (roundAt < given.givenAt || had < first) return first
    let age = given.intervalMillis * firstPart
    while (given.givenAt + age <= had) age *= 2
    return given.givenAt + age
  }

  return {
    isYoung,
    isEarly: (given, now) => isYoung(given, now) && now + slackMillis < firstOf(given),
    seen: (given, askedAt) => {
      const { count, early } = lastOf(given)
      const isCautious = early !== null && count < mostCautious
      chains.set(given.chainId, {
        age: Math.max(askedAt - given.givenAt, 0),
        early: isCautious ? early : null,
        count: isCautious ? count + 1 : 0
      })
    },
    missed: (given, askedAt) => {
      const age = askedAt - given.givenAt
      const last = chains.get(given.chainId)
      // Too late for a first poll: it says nothing about first polls.
      if (last === undefined || age < 0 || age >= given.intervalMillis * firstPart) return
      const early = { age: Math.max(last.early?.age ?? 0, age), at: askedAt }
      chains.set(given.chainId, { ...last, early, count: 0 })
    },
    rest: (resting, intervalMillis, all) =>
      Effect.gen(function* () {
        resting.rest.closeUnsafe()
        const now = yield* MonotonicTime.millis
        const polls = [...all].map((given) => nextOf(given, resting, now))
        const next = Math.min(resting.regularAt, now + intervalMillis, ...polls)
        yield* Effect.timeoutOption(resting.rest.await, Math.max(Math.ceil(next - now), 0))
      })
  }
}
