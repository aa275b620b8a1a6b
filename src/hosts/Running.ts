import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import * as ChainRpcAdapter from "../adapters/json-rpc/node/ChainRpc.js"
import * as BundlerRpcAdapter from "../adapters/json-rpc/services/BundlerRpc.js"
import * as PaymasterRpcAdapter from "../adapters/json-rpc/services/PaymasterRpc.js"
import * as WebhookSenderAdapter from "../adapters/json-rpc/services/WebhookSender.js"
import type * as Egress from "../adapters/json-rpc/transport/Egress.js"
import * as SoleProcess from "../adapters/memory/Replicas.js"
import * as NativeCrypto from "../adapters/native/Crypto.js"
import * as SqlAbiStore from "../adapters/sql/AbiStore.js"
import * as SqlAuditLog from "../adapters/sql/AuditLog.js"
import * as SqlBudgets from "../adapters/sql/budgets/Budgets.js"
import * as SqlJournal from "../adapters/sql/journal/Journal.js"
import * as SqlRefusals from "../adapters/sql/operator/Refusals.js"
import * as SqlPolicies from "../adapters/sql/Policies.js"
import * as SqlSettings from "../adapters/sql/Settings.js"
import * as SqlWatches from "../adapters/sql/watches/Watches.js"
import * as SqlWebhooks from "../adapters/sql/webhooks/Webhooks.js"
import * as Execution from "../application/endpoints/Execution.js"
import type { Submissions } from "../application/endpoints/Submissions.js"
import * as Engine from "../application/lanes/Engine.js"
import * as Health from "../application/observe/Health.js"
import * as Observed from "../application/observe/Observed.js"
import * as Start from "../application/operate/Start.js"
import * as DecisionHook from "../application/policies/DecisionHook.js"
import * as Rulebook from "../application/policies/Rulebook.js"
import * as Rules from "../application/policies/Rules.js"
import type { AbiStore } from "../application/ports/AbiStore.js"
import { AuditLog } from "../application/ports/AuditLog.js"
import type { Budgets } from "../application/ports/Budgets.js"
import type { BundlerRpc } from "../application/ports/chain/BundlerRpc.js"
import { ChainRpc } from "../application/ports/chain/ChainRpc.js"
import type { PaymasterRpc } from "../application/ports/chain/PaymasterRpc.js"
import * as ClockTrust from "../application/ports/clock/ClockTrust.js"
import type { Journals } from "../application/ports/journal/Journals.js"
import type { NetworkProfile } from "../application/ports/NetworkProfile.js"
import type { Networks } from "../application/ports/Networks.js"
import type { Settings } from "../application/ports/operator/Settings.js"
import type { Policies } from "../application/ports/Policies.js"
import type { RateLimit } from "../application/ports/RateLimit.js"
import type { Replicas } from "../application/ports/Replicas.js"
import { Signers, SystemSigners } from "../application/ports/Signers.js"
import type { Watches } from "../application/ports/Watches.js"
import type { WebhookSender, Webhooks } from "../application/ports/Webhooks.js"
import * as Follower from "../application/watches/Follower.js"
import * as Deliver from "../application/webhooks/Deliver.js"

/** All ports that the use cases require. */
export type Ports =
  | AbiStore
  | AuditLog
  | Budgets
  | ChainRpc
  | DecisionHook.DecisionHook
  | Engine.Engine
  | Health.Health
  | Journals
  | Networks
  | Policies
  | Rules.Rules
  | RateLimit
  | Rulebook.Rulebook
  | Settings
  | Signers
  | Submissions
  | SystemSigners
  | Watches
  | WebhookSender
  | Webhooks

/** An implementation of a port. */
export type Port<P> = Layer.Layer<P, { readonly message: string }>

/** Ports that a program may replace. */
export interface Own {
  readonly abiStore?: Port<AbiStore>
  readonly auditLog?: Port<AuditLog>
  readonly budgets?: Port<Budgets>
  readonly bundlerRpc?: Port<BundlerRpc>
  readonly chainRpc?: Port<ChainRpc>
  readonly journal?: Port<Journals>
  readonly paymasterRpc?: Port<PaymasterRpc>
}

export interface Given<R = never> extends Own {
  readonly sql: Port<SqlClient>
  /** Seals stored secrets. */
  readonly sealingKey: Redacted.Redacted<string>
  /** Destinations allowed for callers' URLs. */
  readonly egress: Partial<Egress.Rules>
  /** PostgreSQL on which the processes of a group share the lanes; null: only this process uses them. */
  readonly shared: { readonly url: Redacted.Redacted<string>; readonly group: string } | null
  /** Chains with monitored balances, and each chain's low-balance threshold in wei. */
  readonly networks: ReadonlyArray<NetworkProfile>
  readonly lowBalances: ReadonlyMap<bigint, bigint>
  /** Checks whether the clock is right. */
  readonly clockCheck: Effect.Effect<void, never, ChainRpc | Scope.Scope | R>
}

/** Data of callers in the database. */
export const stored = ({
  sealingKey,
  sql,
  ...own
}: Own & Pick<Given, "sealingKey" | "sql">): Port<
  AbiStore | AuditLog | Budgets | Journals | Policies | Settings | Watches | Webhooks
> =>
  Layer.mergeAll(
    own.abiStore ?? Layer.provide(SqlAbiStore.layer, sql),
    own.auditLog ?? Layer.provide(SqlAuditLog.layer, sql),
    own.budgets ?? Layer.provide(SqlBudgets.layer, sql),
    own.journal ?? Layer.provide(SqlJournal.layer({ sealingKey }), sql),
    Layer.provide(SqlPolicies.layer, sql),
    Layer.provide(SqlRefusals.layer, sql),
    Layer.provide(SqlSettings.layer({ sealingKey }), sql),
    Layer.provide(SqlWatches.layer({ sealingKey }), sql),
    Layer.provide(SqlWebhooks.layer({ sealingKey }), sql)
  )

const replicas = <R>({ shared, sql }: Given<R>): Port<Replicas> =>
  shared === null
    ? SoleProcess.layer
    : Layer.unwrap(
        Effect.map(
          Effect.promise(() =>
            Promise.all([
              import("../adapters/sql/postgres/PostgresClient.js"),
              import("../adapters/cluster/Replicas.js")
            ])
          ),
          ([{ session }, { layer }]) => layer({ group: shared.group, connect: session(shared.url) })
        )
      ).pipe(Layer.provide(sql))

/** Time between two polls of the operator's nodes. */
const healthInterval = "4 seconds"

/** Adds spans, metrics, the audit log and balance warnings to the adapters' ports. */
const watched = ({ lowBalances, networks }: Pick<Given, "lowBalances" | "networks">) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { record } = yield* AuditLog
      const system = yield* SystemSigners
      const health = Health.make(
        networks.map((profile) => ({ profile, least: lowBalances.get(profile.chainId) ?? 0n }))
      )
      const nodes = Observed.chainRpc(yield* ChainRpc, health)
      const signers = Observed.signers(yield* Signers, record)
      yield* Effect.ignore(
        Effect.flatMap(system.serviceEoa, ({ address }) =>
          Effect.forEach(networks, ({ chainId }) => health.submits(chainId, address))
        )
      )
      yield* health.poll.pipe(
        Effect.provideService(ChainRpc, nodes),
        Effect.repeat(Schedule.spaced(healthInterval)),
        Effect.forkScoped
      )
      return Context.make(ChainRpc, nodes).pipe(
        Context.add(Health.Health, health),
        Context.add(Signers, {
          resolve: (account, ref) =>
            Effect.tap(signers.resolve(account, ref), ({ address }) => health.register(address))
        }),
        Context.add(SystemSigners, Observed.systemSigners(system, record)),
        Context.merge(Observed.journal(yield* Effect.context<Journals>(), record))
      )
    })
  )

/** The engine over its ports, with its background work. Service and library each add their callers, keys and chains. */
export const layer = <R = never>(given: Given<R>) =>
  Layer.mergeAll(
    Layer.effectDiscard(given.clockCheck),
    Layer.effectDiscard(Start.start),
    Layer.effectDiscard(Deliver.start),
    Layer.effectDiscard(Follower.start)
  ).pipe(
    Layer.provideMerge(
      Execution.layer.pipe(
        Layer.provideMerge(Layer.merge(DecisionHook.layer, Rules.layer)),
        Layer.provideMerge(Engine.layer)
      )
    ),
    Layer.provideMerge(Layer.merge(watched(given), Rulebook.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        stored(given),
        replicas(given),
        given.bundlerRpc ?? BundlerRpcAdapter.layer(),
        given.chainRpc ?? ChainRpcAdapter.layer({ egress: given.egress }),
        given.paymasterRpc ?? PaymasterRpcAdapter.layer(),
        WebhookSenderAdapter.layer({ egress: given.egress })
      )
    ),
    Layer.provide(Layer.sync(ClockTrust.ClockTrust, ClockTrust.make)),
    // Once per process; shared layers load once.
    Layer.provide(Layer.effectDiscard(NativeCrypto.install))
  )
