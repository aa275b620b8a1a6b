import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import * as Migrations from "../../../src/adapters/sql/Migrations.js"
import * as Postgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as StoreCopy from "../../../src/adapters/sql/StoreCopy.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import { temporaryFolder } from "../../support/journal/Layers.js"
import * as PostgresServer from "../../support/postgres/Postgres.js"

const databases = PostgresServer.perFile()

it.live(
  "long rows are copied few at a time, short ones many: no statement is longer than the server takes",
  () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "old.db")
      const source = yield* Effect.provide(Sqlite.make({ filename }), Reactivity.layer)
      const target = yield* Effect.provide(Postgres.make(yield* databases.fresh), Reactivity.layer)
      for (const sql of [source, target])
        yield* Effect.provideService(Migrations.run, SqlClient.SqlClient, sql)
      yield* source`
        insert into requests (request_id, account_id, endpoint, chain_id, body, failed, state, accepted_at)
        with recursive rows (n) as (select 1 union all select n + 1 from rows where n < 712)
        select 'r' || n, 'alice', '/execute', '1',
          case when n <= 700 then 'short' else printf('%.*c', 3000000, 'x') end, '[]', 'open', n
        from rows`
      yield* target`create table statements (rows bigint, bytes bigint)`
      yield* target`
        create function note() returns trigger language plpgsql as
        'begin insert into statements select count(*), sum(length(body)) from added; return null; end'`
      yield* target`
        create trigger note after insert on requests referencing new table as added
        for each statement execute function note()`
      const copied = yield* StoreCopy.copy(source, target, () => Effect.void)
      expect(copied.find(({ table }) => table === "requests")?.rows).toBe(712)
      const statements = yield* target<{ readonly rows: number; readonly bytes: number }>`
        select rows, bytes from statements`
      expect(Math.max(...statements.map(({ bytes }) => bytes))).toBeLessThan(10_000_000)
      expect(statements.length).toBeLessThan(10)
    }),
  120_000
)
