import { randomUUID } from "node:crypto"
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as EntityId from "effect/cluster/EntityId"
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Runners from "effect/cluster/Runners"
import * as ShardId from "effect/cluster/ShardId"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { Replicas } from "../../application/ports/Replicas.js"
import * as Signals from "./Signals.js"

/** The registry of processes in the database cannot be used. */
export class ReplicasError extends Data.TaggedError("ReplicasError")<{
  readonly message: string
}> {}

export interface Options {
  /** Processes of one group share lanes: replicas with the same keys. At most 47 characters of `a-z0-9`. */
  readonly group: string
  /** Connects to the same database, for signals. */
  readonly connect: Effect.Effect<PgConnection, SqlError, Scope.Scope>
}

/** Of the tables in the database. */
const prefix = "castellan_cluster"

/** Lanes are spread over so many shards, of which each belongs to one process of the group at a time. */
const shards = 64

/**
 * A sign of life every 2 seconds: a process that is held up for less than 5 keeps its lanes, and one that is gone loses
 * them 5 to 7 seconds after its end.
 */
const expiration = "7 seconds"
const signOfLife = "2 seconds"
/** How often a process looks who is alive, and what it has been assigned, milliseconds. */
const lookMillis = 500

/** An element whenever this process has been given shards of the group, looked at again and again. */
const gained = (cluster: Sharding.Sharding["Service"], group: string): Stream.Stream<void> => {
  const ids = Array.from({ length: shards }, (_, n) => ShardId.make(group, n + 1))
  let had = new Set<ShardId.ShardId>()
  const look = Effect.sync(() => {
    const has = new Set(ids.filter((id) => cluster.hasShardId(id)))
    const isMore = [...has].some((id) => !had.has(id))
    had = has
    return isMore
  })
  return Stream.fromEffectSchedule(look, Schedule.spaced(lookMillis / 2)).pipe(
    Stream.filter((isMore) => isMore),
    Stream.map(() => undefined)
  )
}

/**
 * Spreads the lanes over the processes of a group that share a PostgreSQL database, by the shards of `effect/cluster`.
 * Locks of shards are rows that expire, so that a process that hangs loses its lanes as one does that has died.
 */
export const layer = ({
  connect,
  group
}: Options): Layer.Layer<Replicas, ReplicasError, SqlClient.SqlClient> => {
  const process = randomUUID()
  const config = ShardingConfig.layer({
    runnerAddress: Option.some(RunnerAddress.make(process, 1)),
    availableShardGroups: [group],
    assignedShardGroups: [group],
    shardsPerGroup: shards,
    shardLockDisableAdvisory: true,
    shardLockExpiration: expiration,
    shardLockRefreshInterval: signOfLife,
    refreshAssignmentsInterval: lookMillis,
    entityMessagePollInterval: lookMillis
  })
  // Apart from the storage: `SqlRunnerStorage.layerWith` dies where its tables cannot be made.
  const tables = Migrator.make({})({
    loader: SqlRunnerStorage.migrations({ prefix }),
    table: `${prefix}_runner_migrations`
  })
  const storage = Layer.provide(SqlRunnerStorage.layerStorage({ prefix }), Layer.effectDiscard(tables))
  const sharding = Sharding.layer.pipe(
    Layer.provide(Runners.layerNoop),
    Layer.provide(MessageStorage.layerNoop),
    Layer.provide(RunnerHealth.layerNoop)
  )
  return Layer.effect(
    Replicas,
    Effect.gen(function* () {
      const cluster = yield* Sharding.Sharding
      const runners = yield* RunnerStorage.RunnerStorage
      /** As far as is known: a look that fails does not say that there is nobody, whose lanes would be free to take. */
      let independent: ReadonlyArray<string> = []
      // Under this name it claims lanes in the journal.
      yield* Effect.annotateLogs(Effect.logInfo("shares the lanes of its database"), { process })
      return {
        ...(yield* Signals.make(connect)),
        process,
        owns: ({ chainId, signer }) =>
          cluster.hasShardId(cluster.getShardId(EntityId.make(`${chainId}:${signer}`), group)),
        assigned: gained(cluster, group),
        independent: Effect.match(runners.getRunners, {
          onFailure: () => independent,
          onSuccess: (found) => {
            independent = found.flatMap(([runner]) =>
              runner.groups.includes(group) ? [] : runner.address.host
            )
            return independent
          }
        })
      }
    })
  ).pipe(
    Layer.provide(sharding),
    Layer.provide(storage),
    Layer.provide(config),
    Layer.catch(() =>
      Layer.effectContext(
        Effect.fail(
          new ReplicasError({ message: "the registry of processes in the database cannot be used" })
        )
      )
    )
  )
}
