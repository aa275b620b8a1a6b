import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as Asking from "./Asking.js"
import type { Entry } from "./Entry.js"
import type { WatchedLane } from "./WatchedLane.js"

/**
 * When a lane's transactions are looked at: all of them every `pollIntervalMillis`, and what was just given to a node
 * more often in the meantime. Chains that mine at once, or several times a second, show it long before the next regular
 * look; elsewhere more looks would only cost. What a chain did last decides, and of an unknown one the best is hoped for.
 */
export interface Pace {
  /** What the round that begins asks for. */
  readonly turnOf: (lane: WatchedLane, now: number) => ReadonlyArray<Entry>
  /** Waits for the next round. */
  readonly rest: (lane: WatchedLane) => Effect.Effect<void>
  /** Ends the rest of a lane for a transaction that has just come. */
  readonly wake: (lane: WatchedLane, nonce: bigint) => Effect.Effect<void>
  /** It may be mined any moment, and the next regular look has not come. */
  readonly isYoung: (entry: Entry, now: number) => boolean
  /** Its receipt was seen. */
  readonly seen: (entry: Entry, now: number) => void
}

const mostChains = 1_000
/** Of the interval: the first look after the one at once. Each further one comes at twice the age. */
const firstPart = 1 / 16
/** Of the interval: what is seen by then was seen at the first regular look, which comes late on a busy machine. */
const soonParts = 1.5

const intervalOf = ({ entries }: WatchedLane): number =>
  Math.min(...[...entries.values()].map(({ profile }) => profile.pollIntervalMillis))

export const make = (): Pace => {
  const slow = new Lru<bigint, true>(mostChains)

  const isYoung = ({ offeredAt, profile, record }: Entry, now: number): boolean =>
    record.state === "signed" &&
    now >= offeredAt &&
    now - offeredAt < profile.pollIntervalMillis &&
    slow.get(record.chainId) === undefined

  const nextLookOf = (entry: Entry, now: number): number => {
    if (!isYoung(entry, now)) return Number.POSITIVE_INFINITY
    let age = entry.profile.pollIntervalMillis * firstPart
    while (entry.offeredAt + age <= now) age *= 2
    return entry.offeredAt + age
  }

  return {
    isYoung,
    turnOf: (lane, now) => {
      const all = [...lane.entries.values()]
      const interval = intervalOf(lane)
      // A clock that was set back delays no look.
      const isRegular = now >= lane.regularAt || lane.regularAt - now > interval
      if (isRegular) lane.regularAt = now + interval
      return Asking.turnOf(isRegular ? all : all.filter((entry) => isYoung(entry, now)))
    },
    rest: (lane) =>
      Effect.gen(function* () {
        lane.rest.unsafeClose()
        if (lane.entries.size === 0) return
        const now = yield* Clock.currentTimeMillis
        const looks = [...lane.entries.values()].map((entry) => nextLookOf(entry, now))
        const next = Math.min(lane.regularAt, now + intervalOf(lane), ...looks)
        yield* Effect.timeoutOption(lane.rest.await, Math.max(next - now, 0))
      }),
    wake: (lane, nonce) =>
      Effect.gen(function* () {
        const entry = lane.entries.get(nonce)
        if (entry !== undefined && isYoung(entry, yield* Clock.currentTimeMillis)) yield* lane.rest.open
      }),
    seen: ({ offeredAt, profile, record }, now) => {
      if (record.state !== "signed") return
      if (now - offeredAt < profile.pollIntervalMillis * soonParts) slow.delete(record.chainId)
      else slow.set(record.chainId, true)
    }
  }
}
