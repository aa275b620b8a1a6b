import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../../src/adapters/sql/journal/Journal.js"
import type { PostgresClient } from "../../../../src/adapters/sql/postgres/PostgresClient.js"
import * as Sqlite from "../../../../src/adapters/sql/sqlite/Sqlite.js"
import { acceptOp, answer, record, signOps } from "../../../support/journal/Facts.js"
import * as Journals from "../../../support/journal/Journals.js"
import { options } from "../../../support/journal/Layers.js"
import * as Make from "../../../support/journal/Make.js"
import * as Log from "../../../support/Log.js"
import * as Postgres from "../../../support/postgres/Postgres.js"

const databases = Postgres.perFile()
const sqlite = Layer.provideMerge(SqlJournal.layer(options), Sqlite.layer({ filename: ":memory:" }))
const postgres = Layer.provideMerge(SqlJournal.layer(options), databases.layer)

/** Removes the rows that an older copy of the database lacks. */
const withoutTransactions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`delete from transaction_versions`
  yield* sql`delete from transaction_ops`
  yield* sql`delete from transactions`
  yield* sql`update ops set state = 'accepted', tx_hash = null`
})

describe.each([
  ["SQLite", sqlite],
  ["PostgreSQL", postgres]
] as const)("a database replaced by an older copy under its process, on %s", (_, layer) => {
  it.effect("is detected by the next write to the lane and is no longer used", () => {
    const log = Log.make()
    return Effect.gen(function* () {
      const journal = yield* Journals.all
      yield* signOps("r1", [1])
      yield* acceptOp("r2", 2)
      yield* withoutTransactions
      const refused = { message: expect.stringContaining("older") }
      expect(yield* Effect.flip(record(journal, "r2", [2], { chainNonce: 1n }))).toMatchObject(refused)
      expect(yield* Effect.flip(journal.request("r1"))).toMatchObject(refused)
      expect(yield* Effect.flip(journal.busy)).toMatchObject(refused)
      expect(log.lines.filter(({ level }) => level === "ERROR")).toMatchObject([
        { message: expect.stringContaining("restart every process") }
      ])
    }).pipe(Effect.provide(layer), Effect.provide(log.layer))
  })

  it.effect("is found by the next sweep when the process writes nothing", () =>
    Effect.gen(function* () {
      const journal = yield* Journals.all
      yield* signOps("r1", [1])
      expect(yield* journal.busy).toHaveLength(1)
      yield* withoutTransactions
      expect(yield* Effect.flip(journal.busy)).toMatchObject({ message: expect.stringContaining("older") })
    }).pipe(Effect.provide(layer))
  )

  it.effect("differs from a database that has forgotten finished work", () =>
    Effect.gen(function* () {
      const journal = yield* Journals.all
      const sql = yield* SqlClient.SqlClient
      yield* signOps("r1", [1])
      yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1n), 0n)], true)
      yield* answer(journal, "r1")
      yield* journal.forget(Number.MAX_SAFE_INTEGER)
      expect(yield* sql`select nonce from transactions`).toEqual([])
      expect(yield* journal.busy).toEqual([])
      yield* signOps("r2", [2])
    }).pipe(Effect.provide(layer))
  )
})

/** Runs `between` after a snapshot begins and before its first read. */
const interrupted = (between: () => Promise<unknown>) =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.map(SqlClient.SqlClient, (sql) => {
      const { ofOneMoment } = sql as PostgresClient
      return Object.assign(sql, {
        ofOneMoment: ((effect) =>
          ofOneMoment(Effect.andThen(Effect.promise(between), effect))) satisfies typeof ofOneMoment
      })
    })
  ).pipe(Layer.provide(databases.layer))

describe("a snapshot from before the newest transaction", () => {
  it.effect("is not an older database", () => {
    let between = (): Promise<unknown> => Promise.resolve()
    return Effect.gen(function* () {
      const journal = yield* Journals.all
      yield* signOps("r1", [1])
      yield* acceptOp("r2", 2)
      between = () => Effect.runPromise(record(journal, "r2", [2], { chainNonce: 1n }))
      expect(yield* journal.busy).toHaveLength(1)
      between = () => Promise.resolve()
      expect(yield* journal.busy).toHaveLength(1)
    }).pipe(
      Effect.provide(
        Layer.provide(
          SqlJournal.layer(options),
          interrupted(() => between())
        )
      )
    )
  })
})
