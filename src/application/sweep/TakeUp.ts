import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { Engine } from "../lanes/Engine.js"
import type { Kind } from "../lanes/requests/Requests.js"
import { TransactionMonitor } from "../lanes/TransactionMonitor.js"
import type * as Troubles from "../observe/Troubles.js"
import * as Sponsorships from "../pay/Sponsorships.js"
import { Budgets, type BudgetsError } from "../ports/Budgets.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import type { TransactionRecord } from "../ports/journal/Transactions.js"
import { Networks } from "../ports/Networks.js"
import * as ServiceSubmission from "../prepare/ServiceEoa.js"
import type { Caller } from "../request/Caller.js"
import type { Failure } from "../request/Failure.js"
import * as ExecuteOperations from "../usecases/operations/ExecuteOperations.js"
import * as Obstacles from "./Obstacles.js"

interface UseCase<A, I, B, J, R> {
  readonly kind: Kind<A, I, B, J>
  readonly run: (caller: Caller, request: A) => Effect.Effect<B, Failure, R>
}

export type Requirements = ExecuteOperations.Requirements

type Resume = (caller: Caller, body: string) => Effect.Effect<void, unknown, Requirements>

const resumable = <A, I, B, J>({
  kind,
  run
}: UseCase<A, I, B, J, Requirements>): readonly [string, Resume] => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(kind.Request))
  return [kind.endpoint, (caller, body) => Effect.flatMap(decode(body), (request) => run(caller, request))]
}

/** The writing endpoints, whose accepted requests go on after a restart. */
const endpoints: ReadonlyMap<string, Resume> = new Map([resumable(ExecuteOperations)])

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
