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
import { laneKey } from "../../application/ports/journal/Transactions.js"
import { Replicas } from "../../application/ports/Replicas.js"
import * as Signals from "./Signals.js"

/** The database's registry of processes is unavailable. */
export class ReplicasError extends Data.TaggedError("ReplicasError")<{
  readonly message: string
}> {}

export interface Options {
  /** Processes of one group, replicas with the same keys, share lanes. At most 47 characters of `a-z0-9`. */
  readonly group: string
  /** Connects to the same database, for signals. */
  readonly connect: Effect.Effect<PgConnection, SqlError, Scope.Scope>
}

/** Prefix of the tables. */
const prefix = "castellan_cluster"

/** Number of shards; each lane is in a shard, and each shard belongs to one process of the group at a time. */
const shards = 64

/**
 * Heartbeat every 2 seconds: a process stalled for less than 5 seconds keeps its lanes; an ended process loses them after 5
 * to 7 seconds.
 */
const expiration = "7 seconds"
const signOfLife = "2 seconds"
/** Polling interval for live processes and assigned shards, in ms. */
const pollMillis = 500

/** Emits whenever this process gains shards of the group; polls. */
const gained = (cluster: Sharding.Sharding["Service"], group: string): Stream.Stream<void> => {
  const ids = Array.from({ length: shards }, (_, n) => ShardId.make(group, n + 1))
  let had = new Set<ShardId.ShardId>()
  const poll = Effect.sync(() => {
    const has = new Set(ids.filter((id) => cluster.hasShardId(id)))
    const isMore = [...has].some((id) => !had.has(id))
    had = has
    return isMore
  })
  return Stream.fromEffectSchedule(poll, Schedule.spaced(pollMillis / 2)).pipe(
    Stream.filter((isMore) => isMore),
    Stream.map(() => undefined)
  )
}

/**
 * Distributes the lanes over a group's processes with a shared PostgreSQL database, by the shards of `effect/cluster`.
 * Shard locks are rows that expire, so a hung process loses its lanes as a dead one does.
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
    refreshAssignmentsInterval: pollMillis,
    entityMessagePollInterval: pollMillis
  })
  // Created separately: `SqlRunnerStorage.layerWith` dies when it cannot create its tables.
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
      /** Last known value: a failed poll must not suggest that no processes exist and that their lanes are free. */
      let independent: ReadonlyArray<string> = []
      // The process claims lanes in the journal under this name.
      yield* Effect.annotateLogs(Effect.logInfo("shares the lanes of its database"), { process })
      return {
        ...(yield* Signals.make(connect)),
        process,
        owns: (lane) => cluster.hasShardId(cluster.getShardId(EntityId.make(laneKey(lane)), group)),
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
