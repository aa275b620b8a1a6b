import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as Asking from "./Asking.js"
import type { Entry } from "./Entry.js"
import type { WatchedLane } from "./WatchedLane.js"

/**
 * When a lane's transactions are looked at: all of them every `pollIntervalMillis`, and what was just given to a node
 * more often in the meantime. Chains that mine at once, or several times a second, show it long before the next regular
 * look; elsewhere more looks would only cost. What a chain did last decides, and of an unknown one the best is hoped for:
 * a look before the chain can have mined is a call for nothing, and puts off the one that shows the receipt.
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
/** Of the interval: the latest first look at what was just given. Each further one comes at twice the age. */
const firstPart = 1 / 16
/** Of the time that the chain's last transaction took: the first look, where that is sooner. */
const sooner = 3 / 4
/** Of the interval: what is seen before was seen at the first regular look, which comes late on a busy machine. */
const soonParts = 1.5

const intervalOf = ({ entries }: WatchedLane): number =>
  Math.min(...[...entries.values()].map(({ profile }) => profile.pollIntervalMillis))

export const make = (): Pace => {
  /** By chain: how long its last transaction was on its way when its receipt was seen, milliseconds. */
  const took = new Lru<bigint, number>(mostChains)
  const lastOf = ({ record }: Entry): number => took.get(record.chainId) ?? 0

  const isYoung = (entry: Entry, now: number): boolean =>
    entry.record.state === "signed" &&
    now >= entry.offeredAt &&
    now - entry.offeredAt < entry.profile.pollIntervalMillis &&
    lastOf(entry) < entry.profile.pollIntervalMillis * soonParts

  const firstLookOf = (entry: Entry): number =>
    entry.offeredAt +
    Math.min(Math.round(lastOf(entry) * sooner), entry.profile.pollIntervalMillis * firstPart)

  const nextLookOf = (entry: Entry, now: number): number => {
    if (!isYoung(entry, now)) return Number.POSITIVE_INFINITY
    const first = firstLookOf(entry)
    if (now < first) return first
    let age = entry.profile.pollIntervalMillis * firstPart
    while (entry.offeredAt + age <= now) age *= 2
    return entry.offeredAt + age
  }

  /** It cannot be mined yet, as far as the chain's last transaction tells. */
  const isTooYoung = (entry: Entry, now: number): boolean => isYoung(entry, now) && now < firstLookOf(entry)

  return {
    isYoung,
    turnOf: (lane, now) => {
      const all = [...lane.entries.values()].filter((entry) => !isTooYoung(entry, now))
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
    seen: ({ offeredAt, record }, now) => {
      // A clock that was set back says nothing.
      if (record.state === "signed") took.set(record.chainId, Math.max(now - offeredAt, 0))
    }
  }
}
