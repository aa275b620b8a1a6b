import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SignerOf } from "../keys/LaneSigners.js"
import * as Troubles from "../observe/Troubles.js"
import type { LaneJournal } from "../ports/journal/LaneJournal.js"
import type { BusyLane, Tally } from "../ports/journal/Records.js"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { Lane } from "../ports/journal/Transactions.js"
import type { Replicas } from "../ports/Replicas.js"
import type { Claims } from "./Claims.js"
import { nameOf } from "./InFlight.js"

/**
 * Finds the lanes that have something to do, again and again: claims those that are this process's, and wakes their workers.
 * What the process left when it stopped, what another one gave up, and what a lost signal told are the same to it.
 *
 * Gotchas: it looks at lanes, never at requests, but for those that came to their end unheard.
 */
export interface Dependencies {
  readonly laneJournal: Pick<LaneJournal["Service"], "busy">
  readonly requestJournal: Pick<RequestJournal["Service"], "going" | "unanswered">
  readonly claims: Pick<Claims, "keyed" | "take">
  /** Requests that go on, by account: what bounds those that are accepted. */
  readonly counted: (open: ReadonlyArray<Tally>) => void
  readonly owns: Replicas["Service"]["owns"]
  readonly signerOf: SignerOf
  readonly wake: (lane: Lane) => Effect.Effect<void>
  /** Something has become of these requests. */
  readonly affected: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  /** Waits until this process has been given lanes, or something of its lanes has changed elsewhere. */
  readonly nudged: Effect.Effect<void>
}

const everyMillis = 1_000
/** Every so many rounds lanes are woken that nothing has told of, and what is open and what is at its end is read. */
const thorough = 5
/** Requests at their end that one look finds. */
const most = 1_024
/** How long a key has to tell its address. */
const patienceMillis = 5_000

const keyTrouble = (lane: Lane): Troubles.Trouble => ({
  what: "the key of a lane is not configured: its requests wait for it",
  place: "",
  subject: nameOf(lane)
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
  /** Lanes that were this process's in the last round. */
  const own = new Set<string>()

  /**
   * Whether this process has the key of the lane: another service may keep its own lanes in the same database, and mean
   * another key by the same name.
   */
  const hasKey = ({ accountId, key, lane }: BusyLane): Effect.Effect<boolean> =>
    key === null
      ? Effect.succeed(true)
      : Effect.match(signerOf({ accountId, key }), {
          onFailure: ({ reason }) => reason === "unavailable" || reason === "refused",
          onSuccess: ({ address }) => address === lane.signer
        }).pipe(Effect.timeoutOrElse({ duration: patienceMillis, orElse: () => Effect.succeed(true) }))

  const look = (busy: BusyLane, isThorough: boolean) =>
    Effect.gen(function* () {
      const { lane } = busy
      const name = nameOf(lane)
      const wasOwn = own.has(name)
      if (!wasOwn && !owns(lane)) return
      const isKeyed = isThorough || !wasOwn ? yield* hasKey(busy) : null
      if (isKeyed !== null) claims.keyed(lane, isKeyed)
      const isOwn = yield* claims.take(lane)
      if (isOwn) own.add(name)
      else own.delete(name)
      // The worker of a lane that is lost leaves it.
      if (isOwn !== wasOwn || (isOwn && isThorough)) yield* wake(lane)
      if (!isOwn || isKeyed === null) return
      yield* isKeyed ? troubles.passed(keyTrouble(lane)) : troubles.failed(keyTrouble(lane))
      yield* affected(yield* requestJournal.unanswered(lane, most))
    })

  const count = troubles.tolerate(
    troubleOf("open requests could not be counted"),
    Effect.map(requestJournal.going, counted)
  )

  /** What fails of one lane keeps no other from its look. */
  const round = (isThorough: boolean) =>
    troubles.tolerate(
      troubleOf("the journal could not be looked at"),
      Effect.flatMap(laneJournal.busy, (lanes) =>
        Effect.forEach(
          lanes,
          (busy) =>
            troubles.tolerate(
              troubleOf("a lane could not be looked after", nameOf(busy.lane)),
              look(busy, isThorough)
            ),
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

  /** A start waits for the number of open requests, which bounds what is accepted, and for nothing else. */
  return (scope: Scope.Scope): Effect.Effect<void> =>
    Effect.andThen(count, Effect.asVoid(Effect.forkIn(forever, scope)))
}
