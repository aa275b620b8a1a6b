import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as EntryPoint from "../domain/erc4337/EntryPoint.js"
import * as UserOperation from "../domain/erc4337/UserOperation.js"
import * as LaneSigners from "./keys/LaneSigners.js"
import type { Engine } from "./lanes/Engine.js"
import * as RemoteBundler from "./lanes/RemoteBundler.js"
import { RemoteOps } from "./lanes/RemoteOps.js"
import * as Cancellations from "./lanes/requests/Cancellations.js"
import { LaneClaims } from "./lanes/requests/LaneClaims.js"
import { type Kind, Requests } from "./lanes/requests/Requests.js"
import { WakeUps } from "./lanes/requests/WakeUps.js"
import { TransactionMonitor } from "./lanes/TransactionMonitor.js"
import * as Metrics from "./observe/Metrics.js"
import * as Sponsorships from "./pay/Sponsorships.js"
import { Budgets, type BudgetsError } from "./ports/Budgets.js"
import { BundlerRpc } from "./ports/chain/BundlerRpc.js"
import { ChainRpc, type NamedBy } from "./ports/chain/ChainRpc.js"
import type { JournalError } from "./ports/journal/JournalError.js"
import { LaneJournal } from "./ports/journal/LaneJournal.js"
import { RemoteOpJournal } from "./ports/journal/RemoteOpJournal.js"
import type { RemoteSubmission } from "./ports/journal/RemoteSubmissions.js"
import { RequestJournal } from "./ports/journal/RequestJournal.js"
import type { RequestRecord } from "./ports/journal/Requests.js"
import { TransactionJournal } from "./ports/journal/TransactionJournal.js"
import type { LaneWork, TransactionRecord } from "./ports/journal/Transactions.js"
import * as NetworkProfile from "./ports/NetworkProfile.js"
import { Networks } from "./ports/Networks.js"
import type { AccountId } from "./ports/Tenants.js"
import type { Caller } from "./request/Caller.js"
import type { Failure } from "./request/Failure.js"
import * as Backoff from "./runtime/Backoff.js"
import { Lifetime } from "./runtime/Lifetime.js"
import * as CancelRequest from "./usecases/operations/CancelRequest.js"
import * as ExecuteEncoded from "./usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "./usecases/operations/ExecuteOperations.js"
import * as ExecutePasskey from "./usecases/operations/ExecutePasskey.js"
import * as TransactSigner from "./usecases/operations/TransactSigner.js"
import * as Unstuck from "./usecases/operations/Unstuck.js"
import * as CreateWallets from "./usecases/wallets/CreateWallets.js"

interface UseCase<A, I, B, J, R> {
  readonly kind: Kind<A, I, B, J>
  readonly run: (caller: Caller, request: A) => Effect.Effect<B, Failure, R>
}

type Requirements =
  | CreateWallets.Requirements
  | ExecuteEncoded.Requirements
  | ExecuteOperations.Requirements
  | ExecutePasskey.Requirements
  | TransactSigner.Requirements
  | Unstuck.Requirements

type Resume = (caller: Caller, body: string) => Effect.Effect<void, unknown, Requirements>

const resumable = <A, I, B, J>({
  kind,
  run
}: UseCase<A, I, B, J, Requirements>): readonly [string, Resume] => {
  const decode = Schema.decodeUnknown(Schema.parseJson(kind.Request))
  return [kind.endpoint, (caller, body) => Effect.flatMap(decode(body), (request) => run(caller, request))]
}

/** The writing endpoints, whose accepted requests go on after a restart. */
const endpoints: ReadonlyMap<string, Resume> = new Map([
  resumable(CreateWallets),
  resumable(ExecuteOperations),
  resumable(ExecuteEncoded),
  resumable(ExecutePasskey),
  resumable(TransactSigner),
  resumable(Unstuck)
])

const callerOf = ({ accountId, requestId }: RequestRecord): Caller => ({
  principal: { accountId, name: accountId, tier: "free", scopes: new Set(["write"]), paused: false },
  requestId,
  resumed: true
})

/** Pauses before something that could not be taken up is tried again. */
const backoff: Backoff.Backoff = { firstMillis: 2_000, longestMillis: 60_000 }

/** What could not be taken up: each is tried again later, and later each time. */
interface Obstacles {
  /** Runs the effect unless it failed a short while ago; what fails is logged, and counted as long as it fails. */
  readonly past: <R>(name: string, effect: Effect.Effect<void, Obstacle, R>) => Effect.Effect<void, never, R>
}

const obstacles = (): Obstacles => {
  const known = new Map<string, { readonly failures: number; readonly until: number }>()
  const tell = Effect.suspend(() => Metric.set(Metrics.workStranded, known.size))
  return {
    past: (name, effect) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const before = known.get(name)
        if (before !== undefined && before.until > now) return
        const outcome = yield* Effect.exit(effect)
        if (Exit.isSuccess(outcome) || Cause.isInterruptedOnly(outcome.cause)) known.delete(name)
        else {
          const failures = (before?.failures ?? 0) + 1
          known.set(name, { failures, until: now + Backoff.pauseMillis(backoff, failures) })
          yield* Effect.annotateLogs(
            Effect.logError("work in the journal cannot be taken up and is tried again later"),
            {
              work: name,
              reason: Option.match(Cause.failureOption(outcome.cause), {
                onNone: () => Cause.pretty(outcome.cause),
                onSome: ({ message }) => message
              })
            }
          )
        }
        yield* tell
      })
  }
}

/** Why something in the journal cannot be taken up. */
class Obstacle extends Data.TaggedError("Obstacle")<{ readonly message: string }> {}

const obstacle = (message: string) => new Obstacle({ message })
const ofJournal = ({ message }: JournalError): Obstacle => obstacle(message)

/** An accepted request goes on where the journal says that it was. Its caller hears of it by the journal. */
const resume = (requestId: string): Effect.Effect<void, Obstacle, Requirements | RequestJournal> =>
  Effect.gen(function* () {
    const requestJournal = yield* RequestJournal
    const record = yield* Effect.mapError(requestJournal.request(requestId), ofJournal)
    if (record === null || record.outcome !== null) return
    const go = endpoints.get(record.endpoint)
    if (go === undefined) return yield* obstacle(`this version has no endpoint ${record.endpoint}`)
    if (record.body === null) return yield* obstacle("the request was sealed under another key, or changed")
    yield* Effect.catchAll(go(callerOf(record), record.body), (failure) =>
      failure instanceof ParseResult.ParseError
        ? obstacle("the request is of another version of the program")
        : Effect.logInfo("an accepted request has come to its end")
    )
  }).pipe(Effect.annotateLogs({ requestId }))

const namedBy = (trust: "caller" | "operator", account: AccountId): NamedBy =>
  trust === "operator" ? trust : { account }

/** A transaction that may have left is given to the nodes of its lane again, and watched. */
const watch = (record: TransactionRecord): Effect.Effect<void, Obstacle, Engine | Networks> =>
  Effect.gen(function* () {
    const monitor = yield* TransactionMonitor
    if (monitor.isWatched(record)) return
    const networks = yield* Networks
    const profile = yield* networks.profile(record.access.accountId, record.chainId)
    if (profile === null) return yield* obstacle("its network is not configured any more")
    yield* monitor.watch({ profile, record })
  })

/** An op that a bundler was given is watched, and offered again if need be. */
const watchRemote = (
  handover: RemoteSubmission
): Effect.Effect<void, Obstacle, ChainRpc | Engine | Networks> =>
  Effect.gen(function* () {
    const bundlers = yield* BundlerRpc
    const remoteOps = yield* RemoteOps
    if (remoteOps.isWatched(handover)) return
    const rpcs = yield* ChainRpc
    const networks = yield* Networks
    const { accountId, node, signed, space } = handover
    const profile = yield* networks.profile(accountId, space.chainId)
    const version = EntryPoint.versionOf(space.entryPoint)
    if (profile === null || version === undefined)
      return yield* obstacle("its network or EntryPoint is not configured any more")
    if (node.rpc === null) return yield* obstacle("its node was sealed under another key, or changed")
    const chain = yield* Effect.mapError(
      rpcs.connect(Redacted.value(node.rpc), namedBy(node.trust, accountId)),
      ({ message }) => obstacle(message)
    )
    const op = UserOperation.decode(version, signed)
    if (Either.isLeft(op)) return yield* obstacle(`a stored op cannot be read: ${op.left}`)
    const { remoteBundler } = profile
    const bundler =
      remoteBundler === null
        ? null
        : yield* Effect.orElseSucceed(bundlers.connect(Redacted.value(remoteBundler)), () => null)
    const entry = yield* remoteOps.watch({
      chain,
      profile,
      bundler,
      handover,
      offer: { version, entryPoint: space.entryPoint, op: op.right },
      validUntil: RemoteBundler.validUntilOf(version, op.right)
    })
    // Not at once: the process that gave it away may be waiting for the answer.
    yield* remoteOps.offered(entry, true)
  })

/** Sponsored ops that an earlier life, or a dead process, has left are followed to their end. */
const followSponsored: Effect.Effect<void, BudgetsError, ChainRpc | Engine | Networks> = Effect.gen(
  function* () {
    const budgets = yield* Budgets
    const sponsorships = yield* Sponsorships.Sponsorships
    const rpcs = yield* ChainRpc
    const networks = yield* Networks
    for (const chainId of yield* networks.chainIds)
      for (const accountId of yield* Sponsorships.accountsOf(budgets, chainId)) {
        const profile = yield* networks.profile(accountId, chainId)
        const chain =
          profile === null || profile.rpc === null
            ? null
            : yield* Effect.orElseSucceed(rpcs.connect(Redacted.value(profile.rpc), "operator"), () => null)
        if (profile === null || chain === null)
          yield* Effect.logError("sponsored operations can not be followed: the operator has no node there")
        else yield* sponsorships.watch({ accountId, chain, profile })
      }
  }
)

/** Whether this process has the key of the lane: another service may keep its own lanes in the same database. */
const hasKey = ({ accountId, key }: LaneWork): Effect.Effect<boolean, never, LaneSigners.SignerOf> =>
  key === null
    ? Effect.succeed(true)
    : Effect.flatMap(LaneSigners.SignerOf, (signerOf) =>
        Effect.match(signerOf({ accountId, key }), {
          onFailure: ({ reason }) => reason === "unavailable" || reason === "refused",
          onSuccess: () => true
        })
      )

/** Takes up what nothing in this process works on, of a lane that is this process's. */
const sweepLane = (work: LaneWork, taken: Obstacles) =>
  Effect.gen(function* () {
    const { lane } = work
    const transactionJournal = yield* TransactionJournal
    const claims = yield* LaneClaims
    const requests = yield* Requests
    const monitor = yield* TransactionMonitor
    const { scope } = yield* Lifetime
    const canSign = yield* hasKey(work)
    // Another service has the key, perhaps, and works on its lane by itself, or comes back and will.
    const withoutKey = Effect.if(claims.isAlone, {
      onTrue: () => claims.takeWithoutKey(lane),
      onFalse: () => Effect.as(claims.lose(lane), false)
    })
    const isOurs = yield* canSign ? claims.take(lane) : withoutKey
    if (!isOurs) {
      yield* monitor.leave(lane)
      return yield* requests.leave(lane)
    }
    // In nonce order: many nodes refuse a nonce that is ahead of what they know.
    for (const record of work.hasTransactions ? yield* transactionJournal.openOf(lane) : [])
      yield* taken.past(`transaction ${lane.chainId}:${lane.signer}:${record.nonce}`, watch(record))
    // Told also when it is well: what stood in the way before counts no more.
    const key = canSign ? Effect.void : obstacle("its key is not configured: its requests wait for it")
    yield* taken.past(`lane ${lane.chainId}:${lane.signer}`, key)
    if (!canSign) return
    for (const { requestId } of work.requests)
      if (!requests.isWorkedOn(requestId))
        yield* Effect.forkIn(taken.past(`request ${requestId}`, resume(requestId)), scope)
  })

/**
 * Gives up requests of the lane whose time was over before anything of them was signed, whoever works on the lane, and
 * also when nobody can. What was signed once goes on to its end: `signed` remembers it.
 */
const expire = ({ accountId, lane, requests }: LaneWork, signed: Set<string>) =>
  Effect.gen(function* () {
    const requestJournal = yield* RequestJournal
    const wakeUps = yield* WakeUps
    const networks = yield* Networks
    const { review } = yield* Requests
    const profile = yield* networks.profile(accountId, lane.chainId)
    const before = (yield* Clock.currentTimeMillis) - (profile ?? NetworkProfile.defaults).requestExpiryMillis
    for (const { acceptedAt, endpoint, requestId } of requests) {
      if (acceptedAt >= before || signed.has(requestId) || !CancelRequest.isCancellable(endpoint)) continue
      const became = yield* Cancellations.cancel(requestJournal, requestId, "request_expired", {
        onlyUnsigned: true
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

/** Begins the sweep of every lane that has work; a lane whose node or key is silent holds up neither another nor the next. */
const sweepLanes = (taken: Obstacles, busy: Set<string>, signed: Set<string>) =>
  Effect.gen(function* () {
    const laneJournal = yield* LaneJournal
    const { scope } = yield* Lifetime
    const lanes = yield* laneJournal.work
    const open = new Set(lanes.flatMap(({ requests }) => requests.map(({ requestId }) => requestId)))
    for (const requestId of signed) if (!open.has(requestId)) signed.delete(requestId)
    yield* Effect.forEach(lanes, (work) => expire(work, signed), { discard: true })
    yield* endAnswered
    return yield* Effect.forEach(lanes, (work) => {
      const { chainId, signer } = work.lane
      const name = `${chainId}:${signer}`
      if (busy.has(name)) return Effect.succeed(Fiber.void)
      busy.add(name)
      const sweep = sweepLane(work, taken).pipe(
        Effect.catchAllCause((cause) => Effect.logWarning("a lane could not be looked after", cause)),
        Effect.annotateLogs({ chainId: chainId.toString(), signer }),
        Effect.ensuring(Effect.sync(() => busy.delete(name)))
      )
      return Effect.forkIn(sweep, scope)
    })
  })

const sweepRemote = (taken: Obstacles) =>
  Effect.gen(function* () {
    const remoteOpJournal = yield* RemoteOpJournal
    const claims = yield* LaneClaims
    for (const submission of yield* remoteOpJournal.remoteSubmissions) {
      const { authority, chainId } = submission.space
      if (claims.holds({ chainId, signer: authority }))
        yield* taken.past(`op ${submission.userOpHash}`, watchRemote(submission))
    }
  })

const dayMillis = 86_400_000
/** How long bodies, answers and idempotency keys are kept (decisions, 9). */
const keepMillis = 30 * dayMillis

const forget = Effect.gen(function* () {
  const requestJournal = yield* RequestJournal
  yield* requestJournal.forget((yield* Clock.currentTimeMillis) - keepMillis)
})

/** How often the journal is held against what this process works on. */
const sweepInterval = "2 seconds"
const remoteInterval = "5 seconds"

type Surroundings =
  | Requirements
  | RequestJournal
  | LaneJournal
  | TransactionJournal
  | RemoteOpJournal
  | Engine
  | ChainRpc
  | Networks

const tolerated = <E, R>(effect: Effect.Effect<unknown, E, R>): Effect.Effect<void, never, R> =>
  Effect.catchAllCause(Effect.asVoid(effect), (cause) =>
    Cause.isInterruptedOnly(cause)
      ? Effect.void
      : Effect.logWarning("a sweep of the journal failed and is repeated", cause)
  )

/** Takes up, once, everything in the journal that is this process's and that nothing works on. */
export const run: Effect.Effect<void, never, Surroundings> = Effect.suspend(() => {
  const taken = obstacles()
  const lanes = Effect.flatMap(sweepLanes(taken, new Set(), new Set()), Fiber.joinAll)
  return Effect.all([tolerated(lanes), tolerated(sweepRemote(taken)), tolerated(followSponsored)], {
    discard: true
  })
})

/**
 * Holds the journal against what this process works on, again and again: transactions that may be on their way are
 * watched, ops at remote bundlers too, and accepted requests go on. What an earlier life of the process left, what
 * another process gave up, and what a failing part left behind are the same to it. Returns at once: a start waits for
 * nothing of it.
 */
export const start: Effect.Effect<void, never, Surroundings> = Effect.gen(function* () {
  const { nudges, scope } = yield* Lifetime
  const taken = obstacles()
  const repeat = <E, R>(effect: Effect.Effect<unknown, E, R>, pause: Effect.Effect<unknown>) =>
    Effect.forkIn(Effect.forever(Effect.zipRight(tolerated(effect), pause)), scope)
  const busy = new Set<string>()
  const signed = new Set<string>()
  yield* repeat(
    sweepLanes(taken, busy, signed),
    Effect.raceFirst(Queue.take(nudges), Effect.sleep(sweepInterval))
  )
  yield* repeat(sweepRemote(taken), Effect.sleep(remoteInterval))
  yield* repeat(followSponsored, Effect.sleep("1 minute"))
  yield* repeat(forget, Effect.sleep("1 hour"))
})
