import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"

/**
 * When what was given away is looked for on the chain: regularly, and what was just given away more often in the meantime.
 * Chains that mine at once, or several times a second, show it long before the next regular look; elsewhere more looks
 * would only cost. What a chain did last decides, and of an unknown one the best is hoped for: a look before the chain can
 * have it is a call for nothing, and puts off the one that shows it.
 */
export interface Looks {
  /** It may be seen any moment, and the next regular look has not come. */
  readonly isYoung: (given: Given, now: number) => boolean
  /** It is young, and not on the chain yet, as far as the chain's last one tells. */
  readonly isEarly: (given: Given, now: number) => boolean
  /** It was seen on the chain by a look that began then. */
  readonly seen: (given: Given, askedAt: number) => void
  /** It was not on the chain at a look that began then. */
  readonly missed: (given: Given, askedAt: number) => void
  /** Waits for the next look at any of them, which are not awaited longer than the interval. */
  readonly rest: (resting: Resting, intervalMillis: number, all: Iterable<Given>) => Effect.Effect<void>
}

/** What was given to somebody who brings it onto the chain. */
export interface Given {
  readonly chainId: bigint
  /** By `MonotonicTime`. */
  readonly givenAt: number
  /** Of the regular looks. */
  readonly intervalMillis: number
}

/** Whoever looks, between two rounds. */
export interface Resting {
  /** When all is looked at again, by `MonotonicTime`. */
  regularAt: number
  /** When its last round began. */
  roundAt: number
  /** Open: it does not rest. */
  readonly rest: Latch.Latch
}

const mostChains = 1_000
/** Of the interval: the latest first look at what was just given away. Each further one comes at twice the age. */
const firstPart = 1 / 16
/** Of the age at which the chain's last one was looked for and seen: the first look, where that is sooner. */
const lastPart = 3 / 4
/** Beyond the age at which a look came too early, milliseconds: so much later is the next first look at least. */
const latenessMillis = 2
/** So many transactions after a look that came too early, one as early is tried again. */
const mostCautious = 64
/** A timer may end so much too early: a round has all looks that are due until then. */
const slackMillis = 1
/** Of the interval: what is seen before was seen at the first regular look, which comes late on a busy machine. */
const soonParts = 1.5

/** Whether the round that begins looks at all; the next such round comes an interval later. */
export const isRegular = (resting: Resting, intervalMillis: number, now: number): boolean => {
  resting.roundAt = now
  // Also when something has come that is to be looked for more often than all before it.
  const isDue = now >= resting.regularAt || resting.regularAt - now > intervalMillis
  if (isDue) resting.regularAt = now + intervalMillis
  return isDue
}

interface Last {
  /**
   * How old its last one was at the look that showed it, milliseconds. By the begin of the look: were the way of the answer
   * counted, what is looked for at three quarters of it would never be looked for sooner than at three times that way.
   */
  readonly age: number
  /** How old one was at a look that came too early, and when that was: for those that were given since. */
  readonly early: { readonly age: number; readonly at: number } | null
  /** Seen since. */
  readonly count: number
}

export const make = (): Looks => {
  const chains = new Lru<bigint, Last>(mostChains)
  const lastOf = ({ chainId }: Given): Last => chains.get(chainId) ?? { age: 0, early: null, count: 0 }

  const isYoung = (given: Given, now: number): boolean =>
    now >= given.givenAt &&
    now - given.givenAt < given.intervalMillis &&
    lastOf(given).age < given.intervalMillis * soonParts

  const firstOf = (given: Given): number => {
    const { age, early } = lastOf(given)
    const soonest = early === null || early.at >= given.givenAt ? 0 : early.age + latenessMillis
    return (
      given.givenAt +
      Math.min(Math.max(Math.floor(age * lastPart), soonest), given.intervalMillis * firstPart)
    )
  }

  /** The first look that the last round did not have. */
  const nextOf = (given: Given, { roundAt }: Resting, now: number): number => {
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
      // Later than any first look: nothing is learned of those.
      if (last === undefined || age < 0 || age >= given.intervalMillis * firstPart) return
      const early = { age: Math.max(last.early?.age ?? 0, age), at: askedAt }
      chains.set(given.chainId, { ...last, early, count: 0 })
    },
    rest: (resting, intervalMillis, all) =>
      Effect.gen(function* () {
        resting.rest.closeUnsafe()
        const now = yield* MonotonicTime.millis
        const looks = [...all].map((given) => nextOf(given, resting, now))
        const next = Math.min(resting.regularAt, now + intervalMillis, ...looks)
        yield* Effect.timeoutOption(resting.rest.await, Math.max(Math.ceil(next - now), 0))
      })
  }
}
