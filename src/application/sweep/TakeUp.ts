import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as EntryPoint from "../../domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../domain/erc4337/UserOperation.js"
import type { Engine } from "../lanes/Engine.js"
import * as RemoteInclusions from "../lanes/remote/RemoteInclusions.js"
import { RemoteOps } from "../lanes/remote/RemoteOps.js"
import type { Kind } from "../lanes/requests/Requests.js"
import { TransactionMonitor } from "../lanes/TransactionMonitor.js"
import type * as Troubles from "../observe/Troubles.js"
import * as Sponsorships from "../pay/Sponsorships.js"
import { Budgets, type BudgetsError } from "../ports/Budgets.js"
import { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import { type ChainClient, ChainRpc } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { RemoteSubmission } from "../ports/journal/RemoteSubmissions.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import type { TransactionRecord } from "../ports/journal/Transactions.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import { Networks } from "../ports/Networks.js"
import * as ServiceSubmission from "../prepare/ServiceEoa.js"
import type { Caller } from "../request/Caller.js"
import type { Failure } from "../request/Failure.js"
import * as ExecuteEncoded from "../usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../usecases/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../usecases/operations/ExecutePasskey.js"
import * as TransactSigner from "../usecases/operations/TransactSigner.js"
import * as Unstuck from "../usecases/operations/Unstuck.js"
import * as CreateWallets from "../usecases/wallets/CreateWallets.js"
import * as Obstacles from "./Obstacles.js"

interface UseCase<A, I, B, J, R> {
  readonly kind: Kind<A, I, B, J>
  readonly run: (caller: Caller, request: A) => Effect.Effect<B, Failure, R>
}

export type Requirements =
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
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(kind.Request))
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

export const callerOf = ({ accountId, lane, requestId }: RequestRecord): Caller => ({
  principal: { accountId, name: accountId, tier: "free", scopes: new Set(["write"]), paused: false },
  requestId,
  resumed: true,
  chainId: lane.chainId
})

const ofJournal = ({ message }: JournalError): Obstacles.Obstacle => Obstacles.passing(message)

/** An accepted request goes on where the journal says that it was. Its caller hears of it by the journal. */
export const resume = (
  requestId: string
): Effect.Effect<void, Obstacles.Obstacle, Requirements | RequestJournal> =>
  Effect.gen(function* () {
    const requestJournal = yield* RequestJournal
    const record = yield* Effect.mapError(requestJournal.request(requestId), ofJournal)
    if (record === null || record.outcome !== null || record.held != null) return
    const go = endpoints.get(record.endpoint)
    if (go === undefined) return yield* Obstacles.of(`this version has no endpoint ${record.endpoint}`)
    if (record.body === null)
      return yield* Obstacles.of("the request was sealed under another key, or changed")
    yield* Effect.catch(go(callerOf(record), record.body), (failure) =>
      failure instanceof Schema.SchemaError
        ? Obstacles.of("the request is of another version of the program")
        : Effect.logInfo("an accepted request has come to its end")
    )
  }).pipe(Effect.annotateLogs({ requestId }))

/** A transaction that may have left is given to the nodes of its lane again, and watched. */
export const watch = (
  record: TransactionRecord
): Effect.Effect<void, Obstacles.Obstacle, Engine | Networks> =>
  Effect.gen(function* () {
    const monitor = yield* TransactionMonitor
    if (monitor.isWatched(record)) return
    const networks = yield* Networks
    const profile = yield* networks.profile(record.access.accountId, record.chainId)
    if (profile === null) return yield* Obstacles.of("its network is not configured any more")
    yield* monitor.watch({ profile, record })
  })

/**
 * The node that is asked for an op: the caller's own where the request named one. The operator's is the present one, since
 * what was stored with the op is of the past; it also stands in for a caller's that is not allowed any more.
 */
const nodeOf = (
  rpcs: ChainRpc["Service"],
  { rpc: own }: NetworkProfile,
  { accountId, node: { rpc, trust } }: RemoteSubmission
): Effect.Effect<ChainClient, Obstacles.Obstacle> => {
  const ofOperator =
    own === null
      ? Obstacles.of("the operator has no node for its chain any more")
      : Effect.mapError(rpcs.connect(Redacted.value(own), "operator"), ({ message }) => Obstacles.of(message))
  if (trust === "operator") return ofOperator
  if (rpc === null) return Obstacles.of("its node was sealed under another key, or changed")
  return Effect.catch(rpcs.connect(Redacted.value(rpc), { account: accountId }), ({ message }) =>
    own === null ? Obstacles.of(message) : ofOperator
  )
}

/**
 * An op that a bundler was given is watched, and offered again if need be; what has landed is watched until it is for good.
 * One that is watched already goes on at the node and the bundler that the operator has now.
 */
export const watchRemote = (
  submission: RemoteSubmission
): Effect.Effect<void, Obstacles.Obstacle, ChainRpc | Engine | Networks> =>
  Effect.gen(function* () {
    const bundlers = yield* BundlerRpc
    const remoteOps = yield* RemoteOps
    const rpcs = yield* ChainRpc
    const networks = yield* Networks
    const { accountId, signed, space } = submission
    const profile = yield* networks.profile(accountId, space.chainId)
    const version = EntryPoint.versionOf(space.entryPoint)
    if (profile === null || version === undefined)
      return yield* Obstacles.of("its network or EntryPoint is not configured any more")
    const chain = yield* nodeOf(rpcs, profile, submission)
    const { remoteBundler } = profile
    const bundler =
      signed === null || remoteBundler === null
        ? null
        : yield* Effect.orElseSucceed(bundlers.connect(Redacted.value(remoteBundler)), () => null)
    const surroundings = { bundler, chain, profile, submission }
    if (remoteOps.isWatched(submission)) return yield* remoteOps.renew(surroundings)
    if (signed === null) {
      const entry = yield* remoteOps.watch({ ...surroundings, offer: null, validUntil: 0 })
      return yield* remoteOps.offered(entry, "before")
    }
    const op = UserOperation.decode(version, signed)
    if (Result.isFailure(op)) return yield* Obstacles.of(`a stored op cannot be read: ${op.failure}`)
    const entry = yield* remoteOps.watch({
      ...surroundings,
      offer: { version, entryPoint: space.entryPoint, op: op.success },
      validUntil: RemoteInclusions.validUntilOf(version, op.success)
    })
    // Not at once: the process that gave it away may be waiting for the answer.
    yield* remoteOps.offered(entry, "before")
  })

/** Follows sponsored ops that a process left when it stopped to their end. */
export const followSponsored = (
  troubles: Troubles.Troubles
): Effect.Effect<void, BudgetsError, ChainRpc | Engine | Networks> =>
  Effect.gen(function* () {
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
        const trouble = {
          what: "sponsored operations can not be followed: the operator has no node there",
          place: chainId.toString(),
          subject: accountId
        }
        yield* Effect.annotateLogs(
          profile === null || chain === null ? troubles.failed(trouble) : troubles.passed(trouble),
          { chainId: chainId.toString(), accountId }
        )
        if (profile !== null && chain !== null) yield* sponsorships.watch({ accountId, chain, profile })
      }
  })

/** Gives back what the service's EOA might have lost by requests that have come to their end without it. */
export const giveBackEnded: Effect.Effect<
  void,
  BudgetsError | JournalError,
  Budgets | Networks | RequestJournal
> = Effect.gen(function* () {
  const networks = yield* Networks
  for (const chainId of yield* networks.chainIds) yield* ServiceSubmission.giveBackEnded(chainId)
})
