import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as LaneSigners from "../keys/LaneSigners.js"
import type { Engine } from "../lanes/Engine.js"
import * as Cancellations from "../lanes/requests/Cancellations.js"
import { LaneClaims } from "../lanes/requests/LaneClaims.js"
import { Requests } from "../lanes/requests/Requests.js"
import { WakeUps } from "../lanes/requests/WakeUps.js"
import { TransactionMonitor } from "../lanes/TransactionMonitor.js"
import * as Record from "../lanes/worker/Record.js"
import * as Troubles from "../observe/Troubles.js"
import type { ChainRpc } from "../ports/chain/ChainRpc.js"
import { ClockTrust } from "../ports/clock/ClockTrust.js"
import { LaneJournal } from "../ports/journal/LaneJournal.js"
import type { RecoveryJournal } from "../ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { Lane, LaneWork } from "../ports/journal/Transactions.js"
import * as NetworkProfile from "../ports/NetworkProfile.js"
import { Networks } from "../ports/Networks.js"
import { Lifetime } from "../runtime/Lifetime.js"
import * as CancelRequest from "../usecases/operations/CancelRequest.js"
import { Submissions } from "../usecases/operations/Submissions.js"
import * as Obstacles from "./Obstacles.js"
import * as Recovery from "./recovery/Recovery.js"
import * as TakeUp from "./TakeUp.js"

/**
 * Whether this process has the key of the lane: another service may keep its own lanes in the same database, and mean
 * another key by the same name.
 */
const hasKey = ({ accountId, key, lane }: LaneWork): Effect.Effect<boolean, never, LaneSigners.SignerOf> =>
  key === null
    ? Effect.succeed(true)
    : Effect.flatMap(LaneSigners.SignerOf, (signerOf) =>
        Effect.match(signerOf({ accountId, key }), {
          onFailure: ({ reason }) => reason === "unavailable" || reason === "refused",
          onSuccess: ({ address }) => address === lane.signer
        })
      )

/** The parts of a sweep; one that fails keeps no other from being done. */
type Part = "answers" | "budgets" | "expiry" | "forgetting" | "lanes" | "sponsored ops"

/** A journal that is away fails all of them. */
const troubleOf = (part: Part, lane?: Lane): Troubles.Trouble => ({
  what: "a sweep of the journal failed and is repeated",
  place: "",
  subject: lane === undefined ? part : `${part} ${lane.chainId}:${lane.signer}`,
  isDelay: true
})

/** What the sweeps of a process remember. */
interface Sweeping {
  readonly troubles: Troubles.Troubles
  readonly taken: Obstacles.Obstacles
  readonly recovery: Recovery.Recovery
  /** Requests of which something was signed: they do not expire. */
  readonly signed: Set<string>
}

const sweeping = (): Sweeping => ({
  troubles: Troubles.make(),
  taken: Obstacles.make(),
  recovery: Recovery.make(),
  signed: new Set()
})

/** Takes up what nothing in this process works on, of a lane that is this process's. */
const sweepLane = (work: LaneWork, { recovery, signed, taken, troubles }: Sweeping) =>
  Effect.gen(function* () {
    const { lane } = work
    const transactionJournal = yield* TransactionJournal
    const claims = yield* LaneClaims
    const requests = yield* Requests
    const monitor = yield* TransactionMonitor
    const { scope } = yield* Lifetime
    const canSign = yield* hasKey(work)
    // Another service has the key, perhaps, and works on its lane by itself, or comes back and will.
    const withoutKey = Effect.flatMap(claims.isAlone, (isTrue) =>
      isTrue ? claims.takeWithoutKey(lane) : Effect.as(claims.lose(lane), false)
    )
    const isOurs = yield* canSign ? claims.take(lane) : withoutKey
    if (!isOurs) {
      yield* troubles.tolerate(troubleOf("expiry", lane), expire(work, { signed, recovery: null }))
      yield* monitor.leave(lane)
      return yield* requests.leave(lane)
    }
    // In nonce order: many nodes refuse a nonce that is ahead of what they know.
    for (const transaction of work.hasTransactions ? yield* transactionJournal.inFlight(lane) : [])
      yield* taken.past(
        `transaction ${lane.chainId}:${lane.signer}:${transaction.nonce}`,
        TakeUp.watch(Record.recordOf(transaction))
      )
    // Told also when it is well: what stood in the way before counts no more.
    const key = canSign ? Effect.void : Obstacles.of("its key is not configured: its requests wait for it")
    yield* taken.past(`lane ${lane.chainId}:${lane.signer}`, key)
    if (!canSign) return
    const submissions = yield* Submissions
    const alone = work.requests.filter(({ requestId }) => !requests.isWorkedOn(requestId))
    const submitted = yield* submissions.among(alone.map(({ requestId }) => requestId))
    const left = alone.filter(({ requestId }) => !submitted.has(requestId))
    if (left.length > 0)
      yield* taken.past(
        `recovery ${lane.chainId}:${lane.signer}`,
        recovery.examine(
          lane,
          left.map(({ requestId }) => requestId)
        )
      )
    yield* troubles.tolerate(
      troubleOf("expiry", lane),
      expire({ ...work, requests: left }, { recovery, signed })
    )
    for (const { requestId } of left)
      if (recovery.isExamined(requestId) && !requests.isWorkedOn(requestId))
        yield* Effect.forkIn(taken.past(`request ${requestId}`, TakeUp.resume(requestId)), scope)
  })

/**
 * Gives up requests of the lane whose time was over before anything of them was signed, whoever works on the lane, and
 * also when nobody can; what was accepted before this process began, once it is known that the chain has nothing of it.
 * What was signed once goes on to its end: `signed` remembers it. `recovery`: null for a lane that another process works on.
 */
const expire = (
  { accountId, lane, requests }: LaneWork,
  { recovery, signed }: Pick<Sweeping, "signed"> & { readonly recovery: Recovery.Recovery | null }
) =>
  Effect.gen(function* () {
    if (!(yield* (yield* ClockTrust).mayExpire)) return
    const requestJournal = yield* RequestJournal
    const wakeUps = yield* WakeUps
    const networks = yield* Networks
    const { isWorkedOn, review } = yield* Requests
    const profile = yield* networks.profile(accountId, lane.chainId)
    const { requestExpiryMillis } = profile ?? NetworkProfile.defaults
    // Whoever has the lane holds the chain against its requests first, and has as much time for that again.
    const before =
      (yield* Clock.currentTimeMillis) - requestExpiryMillis - (recovery === null ? requestExpiryMillis : 0)
    for (const { acceptedAt, endpoint, notBefore, requestId } of requests) {
      if (Math.max(acceptedAt, (notBefore ?? 0) * 1_000) >= before || signed.has(requestId)) continue
      const isKnown =
        recovery === null ||
        isWorkedOn(requestId) ||
        (yield* recovery.mayExpire(lane, requestId, requestExpiryMillis))
      if (!isKnown) continue
      const became = yield* Cancellations.cancel(requestJournal, requestId, "request_expired", {
        onlyUnsigned: true,
        // It has noted what it is about to replace.
        onlyUnnoted: !CancelRequest.isCancellable(endpoint)
      })
      if (became !== "final") {
        signed.add(requestId)
        continue
      }
      yield* Effect.annotateLogs(
        Effect.logWarning("an accepted request of which nothing was signed in time was given up"),
        { requestId }
      )
      yield* review(requestId)
      yield* wakeUps.signal(lane)
    }
  })

/** Work on requests to which another process has given their final answer ends. */
const endAnswered = Effect.gen(function* () {
  const requestJournal = yield* RequestJournal
  const { review, underWay } = yield* Requests
  const working = underWay()
  if (working.length > 0)
    yield* Effect.forEach(yield* requestJournal.finalAmong(working), review, { discard: true })
})

const openWork = Effect.flatMap(LaneJournal, ({ work }) => work)

/** A sweep of a lane that is not over; `isAskedAgain`: what it reads may be older than what came meanwhile. */
interface Busy {
  isAskedAgain: boolean
}

/** Begins the sweep of every lane that has work; a lane whose node or key is silent holds up neither another nor the next. */
const sweepLanes = (all: Sweeping, busy: Map<string, Busy>) =>
  Effect.gen(function* () {
    const { recovery, signed, taken, troubles } = all
    const { nudges, scope } = yield* Lifetime
    const lanes = yield* openWork
    const open = new Set(lanes.flatMap(({ requests }) => requests).map(({ requestId }) => requestId))
    for (const requestId of signed) if (!open.has(requestId)) signed.delete(requestId)
    recovery.keep(open)
    // What can not be given up or ended keeps no lane from its sweep.
    yield* Effect.forEach(
      lanes,
      (work) => troubles.tolerate(troubleOf("expiry", work.lane), expire(work, all)),
      { discard: true }
    )
    yield* troubles.tolerate(troubleOf("answers"), endAnswered)
    yield* taken.forgetUnseen
    return yield* Effect.forEach(lanes, (work) => {
      const { chainId, signer } = work.lane
      const name = `${chainId}:${signer}`
      const before = busy.get(name)
      if (before !== undefined) {
        before.isAskedAgain = true
        return Effect.forkIn(Effect.void, scope)
      }
      const own: Busy = { isAskedAgain: false }
      busy.set(name, own)
      const trouble = {
        what: "a lane could not be looked after and is tried again",
        place: "lanes",
        subject: name,
        isDelay: true
      }
      const sweep = troubles.tolerate(trouble, sweepLane(work, all)).pipe(
        Effect.annotateLogs({ chainId: chainId.toString(), signer }),
        Effect.ensuring(
          Effect.suspend(() => {
            busy.delete(name)
            return own.isAskedAgain ? Queue.offer(nudges, undefined) : Effect.void
          })
        )
      )
      return Effect.forkIn(sweep, scope)
    })
  })

const dayMillis = 86_400_000
/** How long bodies, answers and idempotency keys are kept (decisions, 9). */
const keepMillis = 30 * dayMillis

const forget = Effect.gen(function* () {
  const { mayDelete } = yield* ClockTrust
  // It is held against the chains' time at the start, and may be confirmed at any time.
  yield* Effect.repeat(mayDelete, { schedule: Schedule.spaced("10 seconds"), until: (may) => may })
  const requestJournal = yield* RequestJournal
  yield* requestJournal.forget((yield* Clock.currentTimeMillis) - keepMillis)
})

/** How often the journal is held against what this process works on. */
const sweepInterval = "2 seconds"

type Surroundings =
  | TakeUp.Requirements
  | RequestJournal
  | LaneJournal
  | TransactionJournal
  | RecoveryJournal
  | Engine
  | ChainRpc
  | Networks
  | Submissions

/** Takes up, once, everything in the journal that is this process's and that nothing works on. */
export const run: Effect.Effect<void, never, Surroundings> = Effect.suspend(() => {
  const own = sweeping()
  const { troubles } = own
  const lanes = Effect.flatMap(sweepLanes(own, new Map()), Fiber.joinAll)
  const all = [
    troubles.tolerate(troubleOf("lanes"), lanes),
    troubles.tolerate(troubleOf("sponsored ops"), TakeUp.followSponsored(troubles)),
    troubles.tolerate(troubleOf("budgets"), TakeUp.giveBackEnded)
  ] as const
  return Effect.all(all, { discard: true })
})

/**
 * Holds the journal against what this process works on, again and again: transactions that may be on their way are
 * watched, and accepted requests go on. What the process left when it stopped, what
 * another process gave up, and what a failing part left behind are the same to it. A start waits for the number of open
 * requests, which bounds what is accepted, and for nothing else.
 */
export const start: Effect.Effect<void, never, Surroundings> = Effect.gen(function* () {
  const { nudges, scope } = yield* Lifetime
  const all = sweeping()
  const { troubles } = all
  const repeat = <E, R>(part: Part, effect: Effect.Effect<unknown, E, R>, pause: Effect.Effect<unknown>) =>
    Effect.forkIn(Effect.forever(Effect.andThen(troubles.tolerate(troubleOf(part), effect), pause)), scope)
  const busy = new Map<string, Busy>()
  yield* (yield* Submissions).start
  yield* repeat(
    "lanes",
    sweepLanes(all, busy),
    Effect.raceFirst(Queue.take(nudges), Effect.sleep(sweepInterval))
  )
  yield* repeat("sponsored ops", TakeUp.followSponsored(troubles), Effect.sleep("1 minute"))
  yield* repeat("budgets", TakeUp.giveBackEnded, Effect.sleep("1 minute"))
  yield* repeat("forgetting", forget, Effect.sleep("1 hour"))
})
