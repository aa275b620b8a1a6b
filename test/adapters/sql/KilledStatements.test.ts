import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "effect/sql/Statement"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as PostgresAdapter from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as Journals from "../../support/journal/Journals.js"
import { options, temporaryFolder } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

/** A method that ends at any of its statements has done nothing, and is done whole when it is called again. */

const databases = Postgres.perFile()
const { lane } = Make

const places: Readonly<
  Record<string, Effect.Effect<Layer.Layer<SqlClient.SqlClient, unknown>, never, never>>
> = {
  SQLite: Effect.succeed(
    Layer.unwrap(
      Effect.map(temporaryFolder, (folder) => Sqlite.layer({ filename: join(folder, "journal.db") }))
    )
  ),
  PostgreSQL: Effect.map(databases.fresh, (address) => PostgresAdapter.layer(address))
}

/** All rows of the tables that methods write to, without their timestamps. */
const tables = [
  "requests",
  "ops",
  "transactions",
  "transaction_versions",
  "transaction_ops",
  "request_events"
]
const contents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const all: Record<string, number | string> = {}
  for (const table of tables) {
    const rows = yield* sql<Record<string, unknown>>`select * from ${sql(table)}`
    all[table] = JSON.stringify(rows.map(({ rpc: _, ...row }) => JSON.stringify(row)).sort())
  }
  return all
})

const ended = "the process ended here"

/** Ends the effect at that one of the statements whose rows it waits for; those before it were sent. */
const endedAt = <A, E, R>(effect: Effect.Effect<A, E, R>, number: number) => {
  let count = 0
  return Effect.exit(
    Effect.provideService(effect, Statement.CurrentTransformer, (statement) =>
      Effect.suspend(() => {
        count += 1
        return count === number ? Effect.die(ended) : Effect.succeed(statement)
      })
    )
  ).pipe(Effect.map((exit) => ({ exit, isOver: count < number })))
}

const opOf = (index: number, hash: number, over: Partial<Parameters<typeof Make.op>[0]> = {}) =>
  Make.op({ index, nonceKey: BigInt(index), userOpHash: Make.word(hash), ...over })

/** Methods in an order in which each has something to do. */
const methods: ReadonlyArray<
  readonly [name: string, call: (journal: Journals.Methods) => Effect.Effect<unknown, unknown>]
> = [
  [
    "accept",
    (journal) =>
      journal.accept([
        Make.acceptance("r1", [opOf(0, 1), opOf(1, 2)], {
          elements: 4,
          unopened: 2,
          metadata: { a: "b" }
        }),
        Make.acceptance("r2", [opOf(3, 4)], { deployments: [Make.deployment()] }),
        Make.acceptance("d1", [Make.direct("d1")])
      ])
  ],
  ["openElements", (journal) => journal.openElements(lane, Make.opening("r1", [opOf(2, 3)]))],
  ["renew", (journal) => journal.renew(lane, [{ ...opOf(0, 11), requestId: "r1" }])],
  [
    "publish",
    (journal) =>
      Effect.flatMap(journal.ready(lane, 1), (ops) =>
        journal.publish(
          lane,
          ops.map(({ opId }) => opId)
        )
      )
  ],
  ["renew of an exposed one", (journal) => journal.renew(lane, [{ ...opOf(0, 12), requestId: "r1" }])],
  ["renumber", (journal) => journal.renumber(lane, [{ ...opOf(1, 13, { sequence: 7n }), requestId: "r1" }])],
  [
    "record",
    (journal) =>
      Effect.flatMap(journal.ready(lane, 9), (ops) =>
        journal.record(
          Make.recording(
            0n,
            ops.filter(({ index, requestId }) => requestId === "r1" && index < 2)
          )
        )
      )
  ],
  [
    "replace",
    (journal) => journal.replace({ ...Make.recording(0n, []), txHash: Make.word(0x77), addedCost: 3n })
  ],
  ["fail", (journal) => journal.fail(lane, [{ requestId: "r1", failed: [2, 3].map((n) => Make.failed(n)) }])],
  [
    "settle",
    (journal) =>
      journal.settle(Make.mined(0n), [Make.landed(Make.word(12), 0n), Make.landed(Make.word(13), 0n)], false)
  ],
  [
    "answer",
    (journal) =>
      Effect.flatMap(journal.newestEvents(["r1"]), (newest) =>
        journal.answer([{ requestId: "r1", outcome: "{}", summary: {}, sequence: newest.get("r1") ?? 0 }])
      )
  ],
  ["unsettle", (journal) => journal.unsettle(lane, 0n)],
  ["recordExternalUse", (journal) => journal.recordExternalUse(lane, 0n, [Make.landed(Make.word(12), 0n)])]
]

describe("a method of the journal that ends at a statement", { timeout: 120_000 }, () => {
  for (const [name, place] of Object.entries(places))
    it.live(`does no part of its work in ${name}, and all of it when called again`, () =>
      Effect.gen(function* () {
        const client = yield* place
        yield* Effect.gen(function* () {
          const journal = yield* Journals.all
          yield* journal.claim(lane, { process: "this", independent: [] })
          for (const [method, call] of methods) {
            const before = yield* contents
            let number = 1
            for (; ; number++) {
              const { exit, isOver } = yield* endedAt(call(journal), number)
              if (isOver) {
                expect([method, exit._tag]).toEqual([method, "Success"])
                break
              }
              expect([method, number, exit._tag]).toEqual([method, number, "Failure"])
              expect([method, number, yield* contents]).toEqual([method, number, before])
            }
            expect([method, number > 1]).toEqual([method, true])
          }
          const [record] = yield* journal.requests(["r1"])
          expect(record?.ops.map(({ state }) => state)).toEqual(["settled", "accepted", "abandoned"])
        }).pipe(Effect.provide(Layer.provideMerge(SqlJournal.layer(options), client)))
      }).pipe(Effect.scoped)
    )
})
