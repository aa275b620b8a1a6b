import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ClusterReplicas from "../../../src/adapters/cluster/Replicas.js"
import * as Postgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as PostgresClient from "../../../src/adapters/sql/postgres/PostgresClient.js"
import type { Lane } from "../../../src/application/ports/journal/Transactions.js"
import { Replicas } from "../../../src/application/ports/Replicas.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as PostgresServer from "../../support/postgres/Postgres.js"

const databases = PostgresServer.perFile()

const lanes: ReadonlyArray<Lane> = Array.from({ length: 40 }, (_, n) => ({
  chainId: 1n,
  signer: Address.unsafe(`0x${n.toString(16).padStart(40, "0")}`)
}))

type Member = Replicas["Service"]

const member = (group: string, url: Effect.Success<typeof databases.fresh>["url"]) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (made) => Scope.close(made, Exit.void))
    const layer = Layer.provide(
      Layer.fresh(ClusterReplicas.layer({ group, connect: PostgresClient.session(url) })),
      Layer.fresh(Postgres.layer({ url }))
    )
    const replicas: Member = Context.get(yield* Layer.buildWithScope(layer, scope), Replicas)
    return { replicas, end: Scope.close(scope, Exit.void) }
  })

/** The tables as version 0.60 of @effect/cluster makes them. */
const earlierTables = [
  `create table castellan_cluster_runners (
    machine_id serial primary key,
    address varchar(255) not null,
    runner text not null,
    healthy boolean not null default true,
    last_heartbeat timestamp not null default now(),
    unique(address)
  )`,
  `create table castellan_cluster_locks (
    shard_id varchar(50) primary key,
    address varchar(255) not null,
    acquired_at timestamp not null
  )`
]

const owned = ({ owns }: Member): number => lanes.filter(owns).length

const until = (isSo: () => boolean) =>
  Effect.repeat(Effect.sync(isSo), { until: (so) => so, schedule: Schedule.spaced("50 millis") })

describe("processes that share a PostgreSQL database", () => {
  it.live(
    "processes of one group own each lane once; a survivor is notified of an ended one's lanes",
    () =>
      Effect.gen(function* () {
        const { url } = yield* databases.fresh
        const one = yield* member("a", url)
        yield* until(() => owned(one.replicas) === lanes.length)
        const other = yield* member("a", url)
        yield* until(() => owned(other.replicas) > 0 && owned(one.replicas) < lanes.length)
        yield* until(() => owned(one.replicas) + owned(other.replicas) === lanes.length)
        expect(lanes.filter((lane) => one.replicas.owns(lane) && other.replicas.owns(lane))).toEqual([])
        expect(yield* one.replicas.independent).toEqual([])
        // The first element is what it has now.
        const told = yield* Effect.forkChild(Stream.runDrain(Stream.take(other.replicas.assigned, 2)))
        yield* one.end
        yield* Fiber.join(told)
        yield* until(() => owned(other.replicas) === lanes.length)
      }),
    60_000
  )

  it.live(
    "processes of two groups own all lanes each and see each other",
    () =>
      Effect.gen(function* () {
        const { url } = yield* databases.fresh
        const one = yield* member("a", url)
        const other = yield* member("b", url)
        yield* until(() => owned(one.replicas) === lanes.length && owned(other.replicas) === lanes.length)
        expect(yield* one.replicas.independent).toEqual([other.replicas.process])
        expect(yield* other.replicas.independent).toEqual([one.replicas.process])
        // A failed query keeps the last known processes.
        const sql = yield* Effect.provide(Postgres.make({ url }), Reactivity.layer)
        yield* sql`alter table castellan_cluster_runners rename to somewhere_else`
        expect(yield* one.replicas.independent).toEqual([other.replicas.process])
        yield* sql`alter table somewhere_else rename to castellan_cluster_runners`
      }),
    60_000
  )

  it.live(
    "processes start together on an empty database",
    () =>
      Effect.gen(function* () {
        const { url } = yield* databases.fresh
        const members = yield* Effect.all(
          Array.from({ length: 6 }, () => member("a", url)),
          { concurrency: "unbounded" }
        )
        const sum = () => members.reduce((all, { replicas }) => all + owned(replicas), 0)
        yield* until(() => members.every(({ replicas }) => owned(replicas) > 0) && sum() === lanes.length)
      }),
    60_000
  )

  it.live(
    "processes take over an earlier version's tables, and the lanes of its ended processes",
    () =>
      Effect.gen(function* () {
        const { url } = yield* databases.fresh
        const sql = yield* Effect.provide(Postgres.make({ url }), Reactivity.layer)
        yield* Effect.forEach(earlierTables, (statement) => sql.unsafe(statement))
        const [mine, other, gone] = ["mine", "other", "gone"].map((name) => `${name}-${randomUUID()}`)
        for (const [host, group, age] of [
          [mine, "a", 0],
          [other, "b", 0],
          [gone, "b", 3_600]
        ]) {
          const runner = JSON.stringify({ address: { host, port: 1 }, groups: [group], weight: 1 })
          yield* sql`insert into castellan_cluster_runners (address, runner, last_heartbeat)
            values (${`${host}:1`}, ${runner}, now() - make_interval(secs => ${age}))`
        }
        yield* sql`insert into castellan_cluster_locks (shard_id, address, acquired_at)
          select 'a:' || n, ${`${mine}:1`}, now() from generate_series(1, 64) n`
        const one = yield* member("a", url)
        expect(yield* one.replicas.independent).toEqual([other])
        // The locks of the other process expire first.
        expect(owned(one.replicas)).toBe(0)
        yield* until(() => owned(one.replicas) === lanes.length)
        expect(yield* one.replicas.independent).toEqual([])
        const machines = yield* sql`select machine_id from castellan_cluster_runners
          where address = ${`${one.replicas.process}:1`}`
        expect(machines).toEqual([{ machine_id: 4 }])
      }),
    60_000
  )

  it.live("processes do not start when the registry cannot be created", () =>
    Effect.gen(function* () {
      const { url } = yield* databases.fresh
      const sql = yield* Effect.provide(Postgres.make({ url }), Reactivity.layer)
      yield* sql`create type castellan_cluster_locks as enum ('other')`
      const failed = yield* Effect.flip(member("a", url))
      expect(failed).toBeInstanceOf(ClusterReplicas.ReplicasError)
    })
  )
})
