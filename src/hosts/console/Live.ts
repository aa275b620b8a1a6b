import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Cancellations from "../../application/answers/Cancellations.js"
import { Submissions } from "../../application/endpoints/Submissions.js"
import * as Metrics from "../../application/observe/Metrics.js"
import * as Observed from "../../application/observe/Observed.js"
import * as Situation from "../../application/operate/Situation.js"
import * as UnstickLane from "../../application/operate/UnstickLane.js"
import { AuditLog } from "../../application/ports/AuditLog.js"
import { Budgets } from "../../application/ports/Budgets.js"
import { ChainRpc } from "../../application/ports/chain/ChainRpc.js"
import { RecoveryJournal } from "../../application/ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../../application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../application/ports/journal/TransactionJournal.js"
import { OperatorLog } from "../../application/ports/operator/OperatorLog.js"
import { Refusals } from "../../application/ports/operator/Refusals.js"
import { RequestHistory } from "../../application/ports/operator/RequestHistory.js"
import { Policies } from "../../application/ports/Policies.js"
import { TenantStore } from "../../application/ports/TenantStore.js"
import { Webhooks } from "../../application/ports/Webhooks.js"
import * as Wait from "../../application/runtime/Wait.js"
import type { Address } from "../../domain/primitives/Address.js"
import type * as Custody from "../../domain/wallet/Custody.js"
import * as Salt from "../../domain/wallet/Salt.js"
import * as WalletAddress from "../../domain/wallet/WalletAddress.js"
import type { Config } from "../config/Config.js"
import { version } from "../Packages.js"
import type { Ports } from "../Wiring.js"
import type { Data } from "./Data.js"
import * as Failures from "./Failures.js"

/** Timeout of a node's answer for a token's symbol, in milliseconds. */
const patienceMillis = 2_000

const custodies: ReadonlyArray<Custody.Stored> = [1, 2, 3, 4, 5]

const walletsOf = ({ accountNetworks, networks }: Config, text: string): ReadonlyArray<Address> => {
  const salt = Salt.from(text)
  if (Result.isFailure(salt)) return []
  const found = [...networks, ...accountNetworks.map(({ profile }) => profile)].flatMap(
    ({ beacon, creationCode, factory }) => {
      if (beacon === null || creationCode === null || factory === null) return []
      const initCodeHash = WalletAddress.initCodeHash(creationCode as WalletAddress.CreationCode, beacon)
      const addressOf = WalletAddress.predictor({ factory, initCodeHash })
      return [
        ...custodies.map((custody) => addressOf(salt.success, custody, false)),
        addressOf(salt.success, 1, true)
      ]
    }
  )
  return [...new Set(found)]
}

/** The console's data of a running service. `isWritable`: whether its database takes a write. */
export const data = (
  config: Config,
  ports: Context.Context<Ports>,
  isWritable: Effect.Effect<boolean>
): Effect.Effect<Data, never, Scope.Scope> =>
  Effect.gen(function* () {
    const requests = Context.get(ports, RequestJournal)
    const history = Context.get(ports, RequestHistory)
    const refusals = Context.get(ports, Refusals)
    const submissions = Context.get(ports, Submissions)
    const rpcs = Context.get(ports, ChainRpc)
    yield* Metrics.note(Metrics.build, { version }, 1)
    return {
      refresh: yield* Observed.lanes(Context.get(ports, TransactionJournal)),
      observer: yield* Effect.provide(Situation.observe(isWritable), ports),
      profiles: config.networks,
      accounts: config.accounts,
      transactions: Context.get(ports, TransactionJournal),
      history,
      walletsOf: (salt) => walletsOf(config, salt),
      requests,
      recovery: Context.get(ports, RecoveryJournal),
      tenants: Context.get(ports, TenantStore),
      budgets: Context.get(ports, Budgets),
      policies: Context.get(ports, Policies),
      webhooks: Context.get(ports, Webhooks),
      audit: Context.get(ports, AuditLog),
      operators: Context.get(ports, OperatorLog),
      failures: Failures.make({ history, refusals, requests }),
      refusal: refusals.find,
      delayOf: submissions.delayOf,
      unknown: (lane) => submissions.unknown(lane)?.nonces ?? [],
      call: (chainId, to, callData) => {
        const rpc = config.networks.find((profile) => profile.chainId === chainId)?.rpc ?? null
        if (rpc === null) return Effect.succeed(null)
        return Wait.within(
          Effect.flatMap(rpcs.connect(Redacted.value(rpc), "operator"), (chain) =>
            chain.call({ to, data: callData })
          ).pipe(
            Effect.map(({ data, success }) => (success ? data : null)),
            Effect.orElseSucceed(() => null)
          ),
          patienceMillis,
          () => Effect.succeed(null)
        )
      },
      unstick: (lane, dryRun) => Effect.provide(UnstickLane.run(lane, dryRun), ports),
      cancel: (requestId, code) =>
        Effect.gen(function* () {
          const became = yield* Cancellations.cancel(requests, requestId, code, { onlyUnsigned: false })
          const record = yield* requests.request(requestId)
          if (record !== null) yield* submissions.review(record)
          return became !== null
        })
    }
  })
