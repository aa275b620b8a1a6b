import * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as EntryPoint from "../domain/erc4337/EntryPoint.js"
import * as UserOperation from "../domain/erc4337/UserOperation.js"
import type { Engine } from "./lanes/Engine.js"
import * as RemoteBundler from "./lanes/RemoteBundler.js"
import { RemoteOps } from "./lanes/RemoteOps.js"
import { type Kind, Requests } from "./lanes/Requests.js"
import { TransactionMonitor } from "./lanes/TransactionMonitor.js"
import * as Sponsorships from "./pay/Sponsorships.js"
import { Budgets, type BudgetsError } from "./ports/Budgets.js"
import { BundlerRpc } from "./ports/chain/BundlerRpc.js"
import { ChainRpc, type NamedBy } from "./ports/chain/ChainRpc.js"
import { Journal, type JournalError } from "./ports/journal/Journal.js"
import type { TransactionRecord } from "./ports/journal/Lanes.js"
import type { RemoteSubmission } from "./ports/journal/RemoteSubmissions.js"
import type { RequestRecord } from "./ports/journal/Requests.js"
import { Networks } from "./ports/Networks.js"
import type { AccountId } from "./ports/Tenants.js"
import type { Caller } from "./request/Caller.js"
import type { Failure } from "./request/Failure.js"
import { Lifetime } from "./runtime/Lifetime.js"
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

/** An accepted request goes on where the journal says that it was. Its caller hears of it when he asks again. */
const resume = (requestId: string): Effect.Effect<void, JournalError, Requirements | Journal | Engine> =>
  Effect.gen(function* () {
    const requests = yield* Requests
    // What works on it may have answered before the chain undid that.
    yield* requests.idle(requestId)
    const journal = yield* Journal
    const record = yield* journal.request(requestId)
    if (record === null || record.outcome !== null) return
    const go = endpoints.get(record.endpoint)
    if (go === undefined)
      return yield* Effect.logError(`an accepted request of ${record.endpoint} can not be taken up`)
    yield* Effect.catchAll(go(callerOf(record), record.body), (failure) =>
      Effect.logInfo(
        typeof failure === "object" && failure !== null && "_tag" in failure && failure._tag === "ParseError"
          ? "an accepted request is of another version of the program and can not be taken up"
          : "an accepted request has come to its end"
      )
    )
  }).pipe(Effect.annotateLogs({ requestId }))

const namedBy = (trust: "caller" | "operator", account: AccountId): NamedBy =>
  trust === "operator" ? trust : { account }

/** A transaction that may have left is given to its node again, and watched. */
const watch = (record: TransactionRecord): Effect.Effect<void, never, ChainRpc | Engine | Networks> =>
  Effect.gen(function* () {
    const monitor = yield* TransactionMonitor
    const rpcs = yield* ChainRpc
    const networks = yield* Networks
    const { accountId, rpc, trust } = record.access
    const profile = yield* networks.profile(accountId, record.chainId)
    const chain = yield* Effect.either(rpcs.connect(Redacted.value(rpc), namedBy(trust, accountId)))
    if (profile === null || Either.isLeft(chain))
      return yield* Effect.logError(
        "a transaction can not be watched: its network or node is not allowed any more"
      )
    yield* monitor.watch({ chain: chain.right, profile, record })
  }).pipe(Effect.annotateLogs({ nonce: record.nonce.toString(), signer: record.signer }))

/** An op that a bundler was given is watched, and offered again if need be. */
const watchHandover = (
  handover: RemoteSubmission
): Effect.Effect<void, never, ChainRpc | Engine | Networks> =>
  Effect.gen(function* () {
    const bundlers = yield* BundlerRpc
    const remoteOps = yield* RemoteOps
    const rpcs = yield* ChainRpc
    const networks = yield* Networks
    const { accountId, node, signed, space } = handover
    const profile = yield* networks.profile(accountId, space.chainId)
    const chain = yield* Effect.either(rpcs.connect(Redacted.value(node.rpc), namedBy(node.trust, accountId)))
    const version = EntryPoint.versionOf(space.entryPoint)
    if (profile === null || version === undefined || Either.isLeft(chain))
      return yield* Effect.logError(
        "an op can not be watched: its network, EntryPoint or node is not allowed any more"
      )
    const op = UserOperation.decode(version, signed)
    if (Either.isLeft(op)) return yield* Effect.logError(`a stored op can not be read: ${op.left}`)
    const { remoteBundler } = profile
    const bundler =
      remoteBundler === null
        ? null
        : yield* Effect.orElseSucceed(bundlers.connect(Redacted.value(remoteBundler)), () => null)
    const entry = yield* remoteOps.watch({
      chain: chain.right,
      profile,
      bundler,
      handover,
      offer: { version, entryPoint: space.entryPoint, op: op.right },
      validUntil: RemoteBundler.validUntilOf(version, op.right)
    })
    // Not at once: the process that gave it away may be waiting for the answer.
    yield* remoteOps.offered(entry, true)
  }).pipe(Effect.annotateLogs({ userOpHash: handover.userOpHash }))

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

const dayMillis = 86_400_000
/** How long bodies, answers and idempotency keys are kept (decisions, 9). */
const keepMillis = 30 * dayMillis

/**
 * Takes up what an earlier life of the process left: watches every transaction that may be on its way, in nonce order,
 * and every op at a remote bundler, then goes on with every accepted request. Later it does the same for requests that a reorganisation has
 * reopened, and forgets old ones. Returns when all of it is under way.
 */
export const start: Effect.Effect<void, JournalError, Requirements | Journal | Engine | ChainRpc | Networks> =
  Effect.gen(function* () {
    const journal = yield* Journal
    const { reopened, scope } = yield* Lifetime
    const lanes = Array.groupBy(yield* journal.open, ({ chainId, signer }) => `${chainId}:${signer}`)
    // A node that is silent holds up its own lanes only.
    yield* Effect.forEach(
      Object.values(lanes),
      (transactions) => Effect.forEach(transactions, watch, { discard: true }),
      { concurrency: "unbounded", discard: true }
    )
    yield* Effect.forEach(yield* journal.remoteSubmissions, watchHandover, { discard: true })
    const inBackground = <R>(effect: Effect.Effect<unknown, JournalError, R>) =>
      Effect.forkIn(
        Effect.catchAllCause(effect, (cause) =>
          Cause.isInterruptedOnly(cause)
            ? Effect.void
            : Effect.logError("work in the background failed", cause)
        ),
        scope
      )
    yield* Effect.forEach(yield* journal.unfinished, (requestId) => inBackground(resume(requestId)), {
      discard: true
    })
    yield* inBackground(
      Effect.forever(Effect.flatMap(Queue.take(reopened), (id) => inBackground(resume(id))))
    )
    yield* inBackground(Effect.repeat(Effect.ignoreLogged(followSponsored), Schedule.spaced("1 minute")))
    yield* inBackground(
      Effect.repeat(
        Effect.flatMap(Clock.currentTimeMillis, (now) => journal.forget(now - keepMillis)),
        Schedule.spaced("1 hour")
      )
    )
  })
