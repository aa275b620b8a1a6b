import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Migrations from "../../../src/adapters/sql/Migrations.js"
import * as Sqlite from "../../../src/adapters/sql/Sqlite.js"
import { accept, record } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import * as Shape from "../../support/schema/Shape.js"

const databases = Postgres.perFile()

const numberOf = (name: string): number => Number.parseInt(name, 10)

/** The shape of the schema after each migration, in their order. */
const shapes = Effect.gen(function* () {
  const found: Array<{ readonly name: string; readonly shape: Shape.Shape }> = []
  for (const last of Object.keys(Migrations.migrations)) {
    const some = Object.entries(Migrations.migrations).filter(([name]) => numberOf(name) <= numberOf(last))
    yield* Migrator.make({})({
      loader: Migrator.fromRecord(Object.fromEntries(some)),
      table: "castellan_migrations"
    })
    found.push({ name: last, shape: yield* Shape.read })
  }
  return found
})

/** Columns that the version before deflated; on PostgreSQL they are text, on SQLite bytes. */
const deflated = {
  outcome: "z2:o4oPAQ==",
  note: "z1:q1bKSCzOSC1WsopWMqhITKIMKumMGjJqCBGGxNYCAA==",
  event: "z3:AUlij9FHEAbBSC2ogCjpzk27CAuBXJsDRNOeWo5uwUGfQ9Gejqnf0BzWiSrKhY3PGKIbAgA="
}

describe.each([
  ["SQLite", Layer.fresh(Sqlite.layer({ filename: ":memory:" })), true],
  ["PostgreSQL", databases.layer, false]
] as const)("an open database of the version before, on %s,", (_, client, isBinary) => {
  it.effect("is taken over with what that deflated", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const journal = Journals.methodsOf(yield* SqlJournal.make(options))
      const column = (text: string) =>
        isBinary ? Buffer.concat([Buffer.from(text.slice(0, 3)), Buffer.from(text.slice(3), "base64")]) : text
      yield* accept(journal, Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
      yield* record(journal, "r1", [0])
      yield* sql`update requests set note = ${column(deflated.note)}, outcome = ${column(deflated.outcome)}`
      yield* sql`update request_events set data = ${column(deflated.event)} where kind = 'signed'`
      yield* sql`update transaction_versions set raw = ${column(deflated.note)}`
      const note = JSON.stringify({ hashes: Array.from({ length: 9 }, () => "0x".padEnd(66, "ab")) })
      const outcome = { httpStatus: 200, status: 1, elements: [{ index: 0, success: true }] }
      expect(yield* journal.request("r1")).toMatchObject({ note, outcome: JSON.stringify(outcome) })
      expect(yield* journal.open).toMatchObject([{ versions: [{ raw: note }] }])
      const data = {
        txHash: "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f",
        blockNumber: "117",
        confirmations: 1,
        elements: [0]
      }
      expect(yield* journal.events("r1", 1, 10)).toMatchObject([{ kind: "signed", data }])
      // And goes on in this version's.
      yield* journal.note("r1", note)
      expect(yield* sql`select note from requests`).toEqual([{ note }])
      expect(yield* journal.request("r1")).toMatchObject({ note })
    }).pipe(Effect.provide(client))
  )
})

describe("migrations", { timeout: 60_000 }, () => {
  it.effect(
    "leave what the version before works with: they add tables, and columns that an insert need not name",
    () =>
      Effect.gen(function* () {
        const all = yield* shapes
        const found = all.flatMap(({ name, shape }, at) => {
          const before = all[at - 1]
          return before === undefined
            ? []
            : Shape.obstacles(before.shape, shape).map((obstacle) => `${name}: ${obstacle}`)
        })
        expect(found).toEqual([])
      }).pipe(Effect.provide(databases.layer))
  )

  for (const [name, statement] of Object.entries({
    "a column that an insert has to name": "alter table requests add column new text not null",
    "a column that is gone": "alter table requests drop column note",
    "a column that is of another type": "alter table requests alter column note type bytea using note::bytea",
    "a unique index on what was there": "create unique index once on requests (account_id, body_hash)",
    "a check of what was there": "alter table requests add constraint sane check (accepted_at > 0) not valid",
    "a reference of what was there":
      "alter table requests add foreign key (account_id) references accounts (account_id) not valid",
    "rows that keep others from being deleted":
      "create table notes (request_id text primary key references requests (request_id))",
    "a trigger":
      "create trigger same before update on requests for each row execute function suppress_redundant_updates_trigger()"
  }))
    it.effect(`are seen to leave ${name}`, () =>
      Effect.gen(function* () {
        yield* Migrations.run
        const sql = yield* SqlClient.SqlClient
        const before = yield* Shape.read
        yield* sql.unsafe(statement)
        const after = yield* Shape.read
        expect(Shape.obstacles(before, after)).not.toEqual([])
      }).pipe(Effect.provide(databases.layer))
    )

  it.effect(
    "may add nullable columns, columns with a default, tables and plain indexes; what they add can be taken away",
    () =>
      Effect.gen(function* () {
        yield* Migrations.run
        const sql = yield* SqlClient.SqlClient
        const before = yield* Shape.read
        for (const statement of [
          "alter table requests add column new_text text check (new_text <> '')",
          "alter table requests add column new_number bigint not null default 1",
          "create table notes (request_id text primary key references requests (request_id) on delete cascade)",
          "create index requests_new on requests (new_number)"
        ])
          yield* sql.unsafe(statement)
        const after = yield* Shape.read
        expect(Shape.obstacles(before, after)).toEqual([])
        yield* Shape.undo(before, after)
        expect(yield* Shape.read).toEqual(before)
      }).pipe(Effect.provide(databases.layer))
  )
})
