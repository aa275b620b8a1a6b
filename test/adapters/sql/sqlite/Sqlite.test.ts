import {
  chmodSync,
  linkSync,
  readdirSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../../src/adapters/sql/journal/Journal.js"
import * as Migrations from "../../../../src/adapters/sql/Migrations.js"
import * as Sqlite from "../../../../src/adapters/sql/sqlite/Sqlite.js"
import { accept } from "../../../support/journal/Facts.js"
import * as Journals from "../../../support/journal/Journals.js"
import { options, temporaryFolder } from "../../../support/journal/Layers.js"
import * as Make from "../../../support/journal/Make.js"
import * as Log from "../../../support/Log.js"
import * as Time from "../../../support/Time.js"

const open = (filename: string) => Effect.provide(Sqlite.make({ filename }), Reactivity.layer)
const inMemory = Sqlite.layer({ filename: ":memory:" })

describe("the SQLite client", () => {
  it.effect("has a write-ahead log and writes it to the disk by itself", () =>
    Effect.gen(function* () {
      const sql = yield* open(join(yield* temporaryFolder, "journal.db"))
      expect(yield* sql`pragma journal_mode`).toEqual([{ journal_mode: "wal" }])
      expect(yield* sql`pragma synchronous`).toEqual([{ synchronous: 1 }])
      expect(yield* sql`pragma foreign_keys`).toEqual([{ foreign_keys: 1 }])
      expect(yield* sql`pragma busy_timeout`).toEqual([{ timeout: 20 }])
    })
  )

  it.effect("opens no temporary file for rollbacks: a write needs no free descriptor", () =>
    Effect.gen(function* () {
      const sql = yield* open(join(yield* temporaryFolder, "journal.db"))
      yield* sql`create table t (n integer primary key, text text)`
      yield* sql`insert into t (n, text) with recursive c(n) as (select 1 union all select n + 1 from c where n < 500)
        select n, hex(zeroblob(500)) from c`
      const openFiles = Effect.sync(() =>
        readdirSync("/proc/self/fd").flatMap((fd) => {
          try {
            return [readlinkSync(`/proc/self/fd/${fd}`)]
          } catch {
            return []
          }
        })
      )
      const nested = sql.withTransaction(Effect.andThen(sql`update t set text = 'x'`, openFiles))
      const during = yield* sql.withTransaction(nested)
      expect(during.filter((name) => name.includes("journal.db-wal"))).not.toEqual([])
      expect(during.filter((name) => name.includes("etilqs"))).toEqual([])
    })
  )

  it.effect("the log is moved into the database once it has 16 MB, and not every 4", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "journal.db")
      const sql = yield* open(file)
      yield* sql`create table t (bytes blob)`
      const megabytes = (count: number) => sql`insert into t (bytes) values (zeroblob(${count * 1_000_000}))`
      for (let n = 0; n < 3; n++) yield* megabytes(5)
      expect(statSync(file).size).toBeLessThan(1_000_000)
      yield* megabytes(2)
      expect(statSync(file).size).toBeGreaterThan(16_000_000)
      expect(yield* sql`select sum(length(bytes)) as n from t`).toEqual([{ n: 17_000_000 }])
    })
  )

  it.effect("a new file and its companions are readable by their owner only", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "journal.db")
      const sql = yield* open(file)
      yield* sql`create table t (n integer)`
      for (const name of [file, `${file}-wal`, `${file}-shm`])
        expect(statSync(name).mode & 0o777, name).toBe(0o600)
    })
  )

  it.effect("a file belongs to one process, whichever link names it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [file, link] = [join(folder, "journal.db"), join(folder, "link.db")]
      symlinkSync(file, link)
      yield* Sqlite.exclusive({ filename: link })
      for (const filename of [file, link])
        expect((yield* Effect.flip(Sqlite.exclusive({ filename }))).message).toContain(
          `another process uses the database file ${filename}`
        )
    })
  )

  it.effect("a database file with a second name is rejected", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [file, link] = [join(folder, "journal.db"), join(folder, "link.db")]
      yield* Effect.scoped(Sqlite.exclusive({ filename: file }))
      linkSync(file, link)
      for (const filename of [file, link])
        expect((yield* Effect.flip(Sqlite.exclusive({ filename }))).message).toContain(
          `the database file ${filename} has 2 names (hard links)`
        )
      unlinkSync(link)
      yield* Sqlite.exclusive({ filename: file })
    })
  )

  for (const [what, replace] of [
    ["removed", () => undefined],
    ["replaced", (file: string) => writeFileSync(file, "")]
  ] as const)
    it.effect(`a file that is ${what} in use takes no statement until it is back`, () =>
      Effect.gen(function* () {
        const log = Log.make()
        const file = join(yield* temporaryFolder, "journal.db")
        yield* Effect.gen(function* () {
          const sql = yield* open(file)
          yield* sql`create table t (x integer)`
          renameSync(file, `${file}.away`)
          replace(file)
          yield* Time.adjust("1 second")
          for (const statement of [
            sql`insert into t (x) values (1)`,
            sql`select x from t`,
            sql.withTransaction(sql`insert into t (x) values (1)`)
          ])
            expect(String((yield* Effect.flip(statement)).reason.cause)).toContain("was removed or replaced")
          renameSync(`${file}.away`, file)
          yield* Time.adjust("1 second")
          yield* sql.withTransaction(sql`insert into t (x) values (2)`)
          expect(yield* sql`select x from t`).toEqual([{ x: 2 }])
        }).pipe(Effect.provide(log.layer))
        expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
          ["ERROR", expect.stringContaining(`database file ${file} was removed or replaced`)],
          ["INFO", "database file is back in use"]
        ])
      })
    )

  it.effect("an unusable file is a typed failure that names it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const missing = join(folder, "missing", "journal.db")
      const garbage = join(folder, "garbage.db")
      writeFileSync(garbage, "not a database, and long enough to be recognized as such ".repeat(50))
      chmodSync(garbage, 0o600)
      for (const [file, code] of [
        [missing, "ENOENT"],
        [folder, "EISDIR"],
        [garbage, "SQLITE_NOTADB"]
      ] as const) {
        const error = yield* Effect.flip(open(file))
        expect(error._tag).toBe("SqliteError")
        expect(error.message).toContain(file)
        expect(error.message).toContain(code)
      }
    })
  )

  it.effect("a transaction has the lock of the writer from its beginning", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const one = yield* open(join(folder, "journal.db"))
      const other = yield* Effect.provide(
        Sqlite.make({ filename: join(folder, "journal.db"), busyTimeoutMillis: 1 }),
        Reactivity.layer
      )
      yield* one`create table t (n integer)`
      // On a separate fiber: inside one client's transaction, another client would join it.
      const elsewhere = Effect.promise(() =>
        Effect.runPromiseExit(other.withTransaction(other`select * from t`))
      )
      const exit = yield* one.withTransaction(Effect.andThen(one`select * from t`, elsewhere))
      expect(Exit.isFailure(exit)).toBe(true)
      // Neither connection is left inside a transaction.
      for (const sql of [one, other]) yield* sql.withTransaction(sql`insert into t (n) values (1)`)
      expect(yield* one`select count(*) as n from t`).toEqual([{ n: 2 }])
    }).pipe(Effect.scoped)
  )

  it.effect("a commit that fails is rolled back, and the next transaction succeeds", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`create table parent (id integer primary key)`
      yield* sql`
        create table child (id integer references parent (id) deferrable initially deferred)`
      const exit = yield* Effect.exit(sql.withTransaction(sql`insert into child (id) values (7)`))
      expect(Exit.isFailure(exit)).toBe(true)
      expect(yield* sql`select * from child`).toEqual([])
      yield* sql.withTransaction(sql`insert into parent (id) values (7)`)
      yield* sql.withTransaction(sql`insert into child (id) values (7)`)
      expect(yield* sql`select * from child`).toEqual([{ id: 7 }])
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("an interrupted transaction writes nothing and lets the next one begin", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`create table t (n integer)`
      const exit = yield* Effect.exit(
        sql.withTransaction(Effect.andThen(sql`insert into t (n) values (1)`, Effect.interrupt))
      )
      expect(Exit.hasInterrupts(exit)).toBe(true)
      yield* sql.withTransaction(sql`insert into t (n) values (2)`)
      expect(yield* sql`select n from t`).toEqual([{ n: 2 }])
    }).pipe(Effect.provide(inMemory))
  )
})

describe("the schema", () => {
  it.effect("is brought up to date once, and again without effect", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* Migrations.run
      const tables = sql`select name, sql from sqlite_master order by name`
      const before = yield* tables
      yield* Migrations.run
      expect(yield* tables).toEqual(before)
      const applied = yield* sql`select migration_id, name from castellan_migrations order by 1`
      expect(applied).toEqual([
        { migration_id: 32, name: "schema" },
        { migration_id: 33, name: "op_rows" },
        { migration_id: 34, name: "operators" },
        { migration_id: 35, name: "budget_totals" },
        { migration_id: 36, name: "unbound_deployments" },
        { migration_id: 37, name: "previews" },
        { migration_id: 38, name: "policies" },
        { migration_id: 39, name: "settings" },
        { migration_id: 40, name: "requests_policies" },
        { migration_id: 41, name: "holds" }
      ])
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("a schema of a newer program version is rejected", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* Migrations.run
      yield* sql`insert into castellan_migrations (migration_id, name) values (9999, 'future')`
      const error = yield* Effect.flip(Migrations.run)
      expect(error._tag).toBe("MigrationsError")
      expect(error.message).toContain("newer version")
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("a schema that cannot be created leaves no tables and is a typed failure", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`create table leases (n integer)`
      const error = yield* Effect.flip(Migrations.run)
      expect(error._tag).toBe("MigrationsError")
      expect(error.message).not.toMatch(/create|table|leases/i)
      expect(yield* sql`select name from sqlite_master where name = 'requests'`).toEqual([])
    }).pipe(Effect.provide(inMemory))
  )
})

describe("a journal whose store fails", () => {
  const journalOn = Layer.provideMerge(SqlJournal.layer(options), inMemory)

  it.effect("fails without SQL or data, has no effect, and works again afterwards", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const journal = yield* Journals.all
      const accepting = accept(journal, Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
      yield* sql`pragma query_only = on`
      const error = yield* Effect.flip(accepting)
      expect(error._tag).toBe("JournalError")
      expect(error.message).toBe("the journal's store failed (SQLITE_READONLY)")
      yield* sql`pragma query_only = off`
      expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toBeNull()
      expect(yield* accepting).toEqual({ _tag: "accepted" })
    }).pipe(Effect.provide(journalOn))
  )

  it.effect("lists all work even where the key of one lane cannot be read", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const journal = yield* Journals.all
      yield* accept(journal, Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
      yield* sql`update requests set lane_key = '{"damaged'`
      expect(yield* journal.busy).toMatchObject([{ lane: Make.lane, key: null }])
      expect(yield* journal.ready(Make.lane, 9)).toMatchObject([{ requestId: "r1", key: null }])
    }).pipe(Effect.provide(journalOn))
  )

  it.effect("at the commit fails as it does everywhere else", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const journal = yield* Journals.all
      yield* sql`create table parent (id text primary key)`
      yield* sql`create table child (id text references parent (id) deferrable initially deferred)`
      yield* sql`
        create trigger orphan after insert on ops begin insert into child (id) values (new.request_id); end`
      const accepting = accept(journal, Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
      const exit = yield* Effect.exit(accepting)
      const failure = Exit.isFailure(exit) ? Option.getOrNull(Cause.findErrorOption(exit.cause)) : null
      expect(failure?.message).toBe("the journal's store failed (SQLITE_CONSTRAINT_FOREIGNKEY)")
      expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toBeNull()
      yield* sql`drop trigger orphan`
      expect(yield* accepting).toEqual({ _tag: "accepted" })
    }).pipe(Effect.provide(journalOn))
  )
})
