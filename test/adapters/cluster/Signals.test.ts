import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as SqlClient from "effect/sql/SqlClient"
import * as Signals from "../../../src/adapters/cluster/Signals.js"
import * as Postgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as PostgresClient from "../../../src/adapters/sql/postgres/PostgresClient.js"
import type { Signal } from "../../../src/application/ports/Replicas.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as PostgresServer from "../../support/postgres/Postgres.js"

const databases = PostgresServer.alone()

const lane = { chainId: 2n ** 64n, signer: Address.unsafe(`0x${"a1".repeat(20)}`) }
const final = (requestId: string): Signal => ({ _tag: "final", requestId })

type Signalling = Effect.Success<ReturnType<typeof Signals.make>>

/** Resolves once a signal of `from` reaches `to`: both are connected then. */
const acquainted = (from: Signalling, to: Signalling) =>
  Effect.gen(function* () {
    const hello = `hello ${Math.random()}`
    const heard = yield* Effect.forkChild(
      Stream.runHead(Stream.filter(to.signals, (one) => one._tag === "final" && one.requestId === hello))
    )
    yield* Effect.raceFirst(
      Fiber.join(heard),
      Effect.repeat(from.tell(final(hello)), Schedule.spaced("20 millis"))
    )
  })

/** Two processes on one database; the second one knows the first. */
const pair = Effect.gen(function* () {
  const { url } = yield* databases.fresh
  const one = yield* Signals.make(PostgresClient.session(url))
  const other = yield* Signals.make(PostgresClient.session(url))
  yield* acquainted(one, other)
  return { url, one, other }
})

/** The next signals in the order received, without greetings. */
const next = ({ signals }: Signalling, count: number) =>
  signals.pipe(
    Stream.filter((one) => one._tag !== "final" || !one.requestId.startsWith("hello")),
    Stream.take(count),
    Stream.runCollect
  )

const statement = (url: Effect.Success<typeof pair>["url"], text: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(text)).pipe(
    Effect.provide(Postgres.layer({ url })),
    Effect.orDie
  )

describe("signals of processes that share a PostgreSQL database", () => {
  it.live("other processes receive signals unchanged and in order", () =>
    Effect.gen(function* () {
      const { one, other } = yield* pair
      const told: ReadonlyArray<Signal> = [
        { _tag: "accepted", lane },
        ...Array.from({ length: 100 }, (_, n) => final(`request ${n} "quoted" ' \\`))
      ]
      yield* Effect.forEach(told, one.tell, { discard: true })
      expect(yield* next(other, told.length)).toEqual(told)
    })
  )

  it.live("processes ignore malformed notifications", () =>
    Effect.gen(function* () {
      const { one, other, url } = yield* pair
      for (const payload of [
        "",
        "nonsense",
        "{}",
        '[{"_tag":"accepted","lane":{"chainId":"1","signer":"0x"}}]'
      ])
        yield* statement(url, `select pg_notify('castellan', '${payload}')`)
      yield* one.tell(final("after them"))
      expect(yield* next(other, 1)).toEqual([final("after them")])
    })
  )

  it.live("signals resume after their connections were cut", () =>
    Effect.gen(function* () {
      const { one, other, url } = yield* pair
      yield* statement(
        url,
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
      )
      yield* acquainted(one, other)
      yield* acquainted(other, one)
    })
  )

  it.live("signals resume after the database server was away", () =>
    Effect.gen(function* () {
      const { one, other } = yield* pair
      const { crash } = yield* databases.server
      yield* Effect.promise(crash)
      yield* acquainted(one, other)
    })
  )
})
