import * as Effect from "effect/Effect"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import type { FollowedTransaction } from "./FollowedTransaction.js"
import * as NodePolls from "./NodePolls.js"
import * as ReceiptSchedule from "./ReceiptSchedule.js"
import type { WatchedLane } from "./WatchedLane.js"

/** Schedules the polls of a lane's transactions: all every `pollIntervalMillis`, recent ones more often; see `ReceiptSchedule`. */
export interface Pace {
  readonly turnOf: (lane: WatchedLane, now: number) => ReadonlyArray<FollowedTransaction>
  readonly rest: (lane: WatchedLane) => Effect.Effect<void>
  readonly wake: (lane: WatchedLane, nonce: bigint) => Effect.Effect<void>
  /** It may be mined before its first regular poll. */
  readonly isYoung: (entry: FollowedTransaction, now: number) => boolean
  readonly seen: (entry: FollowedTransaction, began: number) => void
  readonly missed: (entry: FollowedTransaction, began: number) => void
}

const intervalOf = ({ entries }: WatchedLane): number =>
  Math.min(...[...entries.values()].map(({ profile }) => profile.pollIntervalMillis))

const isSigned = ({ record }: FollowedTransaction): boolean => record.state === "signed"

const givenOf = ({ broadcastAt, profile, record }: FollowedTransaction): ReceiptSchedule.Submission => ({
  chainId: record.chainId,
  givenAt: broadcastAt,
  intervalMillis: profile.pollIntervalMillis
})

export const make = (): Pace => {
  const schedule = ReceiptSchedule.make()

  const isYoung = (entry: FollowedTransaction, now: number): boolean =>
    isSigned(entry) && schedule.isYoung(givenOf(entry), now)

  return {
    isYoung,
    turnOf: (lane, now) => {
      const all = [...lane.entries.values()].filter(
        (entry) => !isSigned(entry) || !schedule.isEarly(givenOf(entry), now)
      )
      const isRegular = ReceiptSchedule.isRegular(lane, intervalOf(lane), now)
      return NodePolls.turnOf(isRegular ? all : all.filter((entry) => isYoung(entry, now)))
    },
    rest: (lane) =>
      Effect.suspend(() => {
        if (lane.entries.size === 0) return Effect.sync(() => lane.rest.closeUnsafe())
        const signed = [...lane.entries.values()].filter(isSigned)
        return schedule.rest(lane, intervalOf(lane), signed.map(givenOf))
      }),
    wake: (lane, nonce) =>
      Effect.gen(function* () {
        const entry = lane.entries.get(nonce)
        if (entry !== undefined && isYoung(entry, yield* MonotonicTime.millis)) yield* lane.rest.open
      }),
    seen: (entry, began) => {
      if (isSigned(entry)) schedule.seen(givenOf(entry), began)
    },
    missed: (entry, began) => {
      if (isSigned(entry)) schedule.missed(givenOf(entry), began)
    }
  }
}
