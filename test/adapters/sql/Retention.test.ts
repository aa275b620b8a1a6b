import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { accept } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Meanwhile from "../../support/postgres/Meanwhile.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import * as Time from "../../support/Time.js"

const databases = Postgres.perFile()

for (const [name, client] of [
  ["SQLite", Layer.orDie(Sqlite.layer({ filename: ":memory:" }))],
  ["PostgreSQL", databases.layer]
] as const)
  describe(`retention in ${name}`, () => {
    it.effect("deletes leases that ended without an op when no request leases their wallets again", () =>
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const sql = yield* SqlClient.SqlClient
        const many = Array.from({ length: 1_200 }, (_, n) =>
          Make.leaseRequest("estimate", { wallet: Address.unsafe(`0x${n.toString(16).padStart(40, "0")}`) })
        )
        yield* journal.lease(many)
        yield* Time.adjust("1 day")
        yield* Make.lease(journal, Make.leaseRequest("recent"))
        const count = Effect.map(
          sql<{ readonly n: number }>`select count(*) as n from leases`,
          ([row]) => row?.n
        )
        expect(yield* count).toBe(1_201)
        yield* journal.forget(86_400_000)
        expect(yield* count).toBe(1)
        // A lease that has not expired stays.
        yield* journal.forget(10 * 86_400_000)
        expect(yield* count).toBe(1)
      }).pipe(Effect.provide(Layer.provideMerge(SqlJournal.layer(options), client)))
    )
  })

describe("a concurrent write of another process during retention", () => {
  it.effect("keeps a renewed authorisation", () =>
    Effect.gen(function* () {
      const journal = yield* Journals.all
      const sql = yield* SqlClient.SqlClient
      yield* accept(
        journal,
        Make.acceptance("r1", [], { deployments: [Make.deployment({ deadline: 2_000 })] })
      )
      yield* Meanwhile.changed(sql, sql, {
        lock: sql`select 1 from deployments for update`,
        method: journal.forget(3_000_000),
        change: sql`update deployments set deadline = 9000, config_hash = ${Make.word(0xc2)}`
      })
      expect(yield* sql`select config_hash from deployments`).toEqual([{ config_hash: Make.word(0xc2) }])
    }).pipe(Effect.provide(Layer.provideMerge(SqlJournal.layer(options), databases.layer)))
  )
})
