import * as Effect from "effect/Effect"
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
  /** It was seen on the chain. */
  readonly seen: (given: Given, now: number) => void
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
  /** Open: it does not rest. */
  readonly rest: Effect.Latch
}

const mostChains = 1_000
/** Of the interval: the latest first look at what was just given away. Each further one comes at twice the age. */
const firstPart = 1 / 16
/** Of the time that the chain's last one took: the first look, where that is sooner. */
const lastPart = 3 / 4
/** Of the interval: what is seen before was seen at the first regular look, which comes late on a busy machine. */
const soonParts = 1.5

/** Whether the round that begins looks at all; the next such round comes an interval later. */
export const isRegular = (resting: Resting, intervalMillis: number, now: number): boolean => {
  // Also when something has come that is to be looked for more often than all before it.
  const isDue = now >= resting.regularAt || resting.regularAt - now > intervalMillis
  if (isDue) resting.regularAt = now + intervalMillis
  return isDue
}

export const make = (): Looks => {
  /** By chain: how long its last one was on its way when it was seen, milliseconds. */
  const took = new Lru<bigint, number>(mostChains)
  const lastOf = ({ chainId }: Given): number => took.get(chainId) ?? 0

  const isYoung = (given: Given, now: number): boolean =>
    now >= given.givenAt &&
    now - given.givenAt < given.intervalMillis &&
    lastOf(given) < given.intervalMillis * soonParts

  const firstOf = (given: Given): number =>
    given.givenAt + Math.min(Math.round(lastOf(given) * lastPart), given.intervalMillis * firstPart)

  const nextOf = (given: Given, now: number): number => {
    if (!isYoung(given, now)) return Number.POSITIVE_INFINITY
    const first = firstOf(given)
    if (now < first) return first
    let age = given.intervalMillis * firstPart
    while (given.givenAt + age <= now) age *= 2
    return given.givenAt + age
  }

  return {
    isYoung,
    isEarly: (given, now) => isYoung(given, now) && now < firstOf(given),
    seen: ({ chainId, givenAt }, now) => void took.set(chainId, now - givenAt),
    rest: (resting, intervalMillis, all) =>
      Effect.gen(function* () {
        resting.rest.unsafeClose()
        const now = yield* MonotonicTime.millis
        const looks = [...all].map((given) => nextOf(given, now))
        const next = Math.min(resting.regularAt, now + intervalMillis, ...looks)
        yield* Effect.timeoutOption(resting.rest.await, Math.max(next - now, 0))
      })
  }
}
