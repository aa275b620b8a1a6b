import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import * as Budgets from "../../../../src/adapters/sql/budgets/Budgets.js"
import * as Postgres from "../../../../src/adapters/sql/postgres/Postgres.js"
import * as Store from "../../../../src/adapters/sql/Store.js"
import { acceptOp, record } from "../../../support/journal/Facts.js"
import * as Journals from "../../../support/journal/Journals.js"
import * as Layers from "../../../support/journal/Layers.js"
import * as Make from "../../../support/journal/Make.js"
import * as Meanwhile from "../../../support/postgres/Meanwhile.js"
import * as PostgresServer from "../../../support/postgres/Postgres.js"

const databases = PostgresServer.perFile()

const clientOf = (address: Postgres.Options) => Effect.provide(Postgres.make(address), Reactivity.layer)

describe("reads in PostgreSQL", () => {
  it.effect("a transaction that settles between two statements is read with its bytes and ops", () =>
    Effect.gen(function* () {
      const address = yield* databases.fresh
      const [sql, other] = [yield* clientOf(address), yield* clientOf(address)]
      const context = yield* Layer.build(Layers.postgresAt(address))
      const journal = Journals.methodsOf(context)
      yield* Effect.provide(acceptOp("r1", 1), context)
      yield* record(journal, "r1", [1])
      const before = yield* journal.openOf(Make.lane)
      expect(before.map(({ ops, versions }) => [versions.length, ops.length])).toEqual([[1, 1]])
      const seen = yield* Meanwhile.changed(sql, other, {
        lock: sql`lock table transaction_versions in access exclusive mode`,
        method: journal.openOf(Make.lane),
        change: sql`update transactions set state = 'settled'`
      })
      expect(seen).toEqual(before)
      expect(yield* journal.openOf(Make.lane)).toEqual([])
    })
  )

  it.effect("a cost booked between two statements counts once", () =>
    Effect.gen(function* () {
      const address = yield* databases.fresh
      const [sql, other] = [yield* clientOf(address), yield* clientOf(address)]
      const budgets = yield* Effect.provideService(Budgets.make, SqlClient.SqlClient, sql)
      const budget = { accountId: null, chainId: 1n, name: "pot" }
      const reservation = { ...budget, id: "a", wei: 7n, limit: null, maxOpen: null, window: "day" } as const
      expect(yield* budgets.reserve([[{ ...reservation, expiresAt: 60_000 }]])).toEqual([null])
      const figures = budgets.figures(budget, 0, "day")
      const seen = yield* Meanwhile.changed(other, sql, {
        lock: other`lock table budget_days in access exclusive mode`,
        method: figures,
        change: Effect.andThen(
          other`update budget_totals set held = '0'`,
          other`insert into budget_days (account_id, chain_id, pot, day, booked) values ('', '1', 'pot', 0, '7')`
        )
      })
      expect(seen).toEqual({ held: 7n, booked: 0n })
      expect(yield* figures).toEqual({ held: 0n, booked: 7n })
    })
  )

  it.effect("see one snapshot despite concurrent commits, and write nothing", () =>
    Effect.gen(function* () {
      const address = yield* databases.fresh
      const [sql, other] = [yield* clientOf(address), yield* clientOf(address)]
      const { query, reading, transaction } = Store.make(sql, Layers.options)
      yield* sql`create table t (n integer)`
      const rows = sql<{ readonly n: number }>`select n from t order by n`
      // On a separate fiber: every statement of this fiber belongs to its transaction.
      const add = (n: number) =>
        Effect.promise(() => Effect.runPromise(other`insert into t (n) values (${n})`))
      const seen = yield* reading(
        Effect.gen(function* () {
          yield* add(1)
          const before = yield* rows
          yield* add(2)
          return [before, yield* rows]
        })
      )
      expect(seen).toEqual([[], []])
      expect(yield* query(rows)).toEqual([{ n: 1 }, { n: 2 }])
      const write = sql`insert into t (n) values (3)`
      expect((yield* Effect.flip(reading(write))).message).toContain("(25006)")
      yield* transaction(write)
      expect(yield* reading(rows)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    })
  )
})

describe("a full disk of PostgreSQL", () => {
  it.effect("has no effect where a statement meets it; where a commit does, that is unknown", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf(yield* databases.fresh)
      const { query, transaction } = Store.make(sql, Layers.options)
      yield* sql`create table t (n integer)`
      yield* sql`create function full_disk() returns trigger language plpgsql as $$
        begin raise exception using errcode = 'disk_full'; end $$`
      yield* sql`create constraint trigger at_commit after insert on t deferrable initially deferred
        for each row when (new.n = 1) execute function full_disk()`
      yield* sql`create trigger at_once after insert on t for each row when (new.n = 2) execute function full_disk()`
      const failureOf = (n: number) =>
        Effect.flip(
          transaction(Effect.andThen(sql`insert into t values (0)`, sql`insert into t values (${n})`))
        )
      const atCommit = yield* failureOf(1)
      expect(atCommit.message).toContain("(53100)")
      expect(atCommit).not.toHaveProperty("isUndone")
      const atOnce = yield* failureOf(2)
      expect(atOnce.message).toContain("(53100)")
      expect(atOnce).toMatchObject({ isUndone: true })
      expect(yield* query(sql`select n from t`)).toEqual([])
    })
  )
})
