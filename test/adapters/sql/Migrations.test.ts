import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import * as Migrations from "../../../src/adapters/sql/Migrations.js"
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

/**
 * Tables that a migration takes away from processes of the previous version: their reservations would leave the totals wrong
 * or stay unread, so these processes reserve nothing any more.
 */
const fenced: Readonly<Record<string, string>> = {
  "0035_budget_totals": "budget_holds",
  "0041_holds": "budget_reservations"
}

describe("migrations", { timeout: 60_000 }, () => {
  it.effect("keep the previous version working: they add tables, and columns that an insert may omit", () =>
    Effect.gen(function* () {
      const all = yield* shapes
      const found = all.flatMap(({ name, shape }, at) => {
        const before = all[at - 1]
        return before === undefined
          ? []
          : Shape.obstacles(before.shape, shape).map(
              (obstacle) => `${name}: ${obstacle.startsWith(`${fenced[name]} `) ? fenced[name] : obstacle}`
            )
      })
      expect([...new Set(found)]).toEqual(Object.entries(fenced).map(([name, table]) => `${name}: ${table}`))
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
    "may add nullable columns, columns with a default, tables and plain indexes; each addition can be dropped",
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
