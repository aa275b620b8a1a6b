import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SignerOf } from "../keys/LaneSigners.js"
import * as Troubles from "../observe/Troubles.js"
import type { LaneJournal } from "../ports/journal/LaneJournal.js"
import type { BusyLane, Tally } from "../ports/journal/Records.js"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"
import { type Lane, type LaneKey, laneKey } from "../ports/journal/Transactions.js"
import type { Replicas } from "../ports/Replicas.js"
import type { Claims } from "./Claims.js"

/**
 * Finds lanes with work at a fixed interval, claims those assigned to this process, and wakes their workers. This covers work
 * left at a restart, lanes released by other processes, and lost signals.
 *
 * Gotchas: it reads lanes, not requests, except finished requests whose waiters were not notified.
 */
export interface Dependencies {
  readonly laneJournal: Pick<LaneJournal["Service"], "busy">
  readonly requestJournal: Pick<RequestJournal["Service"], "going" | "unanswered">
  readonly claims: Pick<Claims, "keyed" | "take">
  /** Receives the counts of open requests by account, which bound acceptance. */
  readonly counted: (open: ReadonlyArray<Tally>) => void
  readonly owns: Replicas["Service"]["owns"]
  readonly signerOf: SignerOf
  readonly wake: (lane: Lane) => Effect.Effect<void>
  readonly affected: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  /** Waits until this process is assigned lanes, or another process reports a change of its lanes. */
  readonly nudged: Effect.Effect<void>
}

const everyMillis = 1_000
/** Interval of thorough rounds, in rounds: they wake lanes without a signal, count open requests and read finished ones. */
const thorough = 5
const most = 1_024
/** Timeout for reading a key's address, milliseconds. */
const patienceMillis = 5_000

const keyTrouble = (lane: Lane): Troubles.Trouble => ({
  what: "the key of a lane is not configured: its requests wait for it",
  place: "",
  subject: laneKey(lane)
})

const troubleOf = (what: string, subject?: string): Troubles.Trouble => ({
  what: `${what}; retrying`,
  place: "",
  isDelay: true,
  ...(subject !== undefined && { subject })
})

export const make = (dependencies: Dependencies) => {
  const { affected, claims, counted, laneJournal, nudged, owns, requestJournal, signerOf, wake } =
    dependencies
  const troubles = Troubles.make()
  const own = new Set<LaneKey>()

  /** Whether this process has the lane's key. Another service may share the database and use the same key name for another key. */
  const hasKey = ({ accountId, key, lane }: BusyLane): Effect.Effect<boolean> =>
    key === null
      ? Effect.succeed(true)
      : Effect.match(signerOf({ accountId, key }), {
          onFailure: ({ reason }) => reason === "unavailable" || reason === "refused",
          onSuccess: ({ address }) => address === lane.signer
        }).pipe(Effect.timeoutOrElse({ duration: patienceMillis, orElse: () => Effect.succeed(true) }))

  const inspect = (busy: BusyLane, isThorough: boolean) =>
    Effect.gen(function* () {
      const { lane } = busy
      const name = laneKey(lane)
      const wasOwn = own.has(name)
      if (!wasOwn && !owns(lane)) return
      const isKeyed = isThorough || !wasOwn ? yield* hasKey(busy) : null
      if (isKeyed !== null) claims.keyed(lane, isKeyed)
      const isOwn = yield* claims.take(lane)
      if (isOwn) own.add(name)
      else own.delete(name)
      // The worker of a lost lane leaves it.
      if (isOwn !== wasOwn || (isOwn && isThorough)) yield* wake(lane)
      if (!isOwn || isKeyed === null) return
      yield* isKeyed ? troubles.passed(keyTrouble(lane)) : troubles.failed(keyTrouble(lane))
      yield* affected(yield* requestJournal.unanswered(lane, most))
    })

  const count = troubles.tolerate(
    troubleOf("open requests could not be counted"),
    Effect.map(requestJournal.going, counted)
  )

  /** A failure on one lane does not delay the others. */
  const round = (isThorough: boolean) =>
    troubles.tolerate(
      troubleOf("journal read failed"),
      Effect.flatMap(laneJournal.busy, (lanes) =>
        Effect.forEach(
          lanes,
          (busy) =>
            troubles.tolerate(troubleOf("lane round failed", laneKey(busy.lane)), inspect(busy, isThorough)),
          { concurrency: "unbounded", discard: true }
        )
      )
    )

  const forever = Effect.gen(function* () {
    for (let rounds = 0; ; rounds += 1) {
      const isThorough = rounds % thorough === 0
      if (isThorough && rounds > 0) yield* count
      yield* round(isThorough)
      yield* Effect.raceFirst(nudged, Effect.sleep(everyMillis))
    }
  })

  /** Startup waits only for the count of open requests, which bounds acceptance. */
  return (scope: Scope.Scope): Effect.Effect<void> =>
    Effect.andThen(count, Effect.asVoid(Effect.forkIn(forever, scope)))
}
