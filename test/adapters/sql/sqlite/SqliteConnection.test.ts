import { mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Reactivity from "effect/reactivity/Reactivity"
import { SqlError } from "effect/sql/SqlError"
import * as ErrorCode from "../../../../src/adapters/sql/ErrorCode.js"
import * as Store from "../../../../src/adapters/sql/Store.js"
import * as Sqlite from "../../../../src/adapters/sql/sqlite/Sqlite.js"
import * as SqliteConnection from "../../../../src/adapters/sql/sqlite/SqliteConnection.js"
import { temporaryFolder } from "../../../support/journal/Layers.js"

const inFile = Effect.gen(function* () {
  const file = join(yield* temporaryFolder, "journal.db")
  return { file, ...(yield* SqliteConnection.open(file)) }
})

/** The code of what the step throws, which has to be an `SqlError`. */
const codeOf = (step: () => unknown): string => {
  try {
    step()
  } catch (error) {
    return error instanceof SqlError ? ErrorCode.suffix(error).slice(2, -1) : `no SqlError: ${error}`
  }
  return "no failure"
}

describe("a connection of SQLite", () => {
  it.effect("names refusals of the database by SQLite's own codes", () =>
    Effect.gen(function* () {
      const { all, file } = yield* inFile
      all("create table t (n integer primary key, u integer unique, text text not null, check (u < 100))", [])
      all("create table child (n integer references t (n))", [])
      all("insert into t (n, u, text) values (1, 1, 'x')", [])
      const insert = (n: unknown, u: unknown, text: unknown) =>
        codeOf(() => all("insert into t (n, u, text) values (?, ?, ?)", [n, u, text]))
      expect(insert(1, 2, "x")).toBe("SQLITE_CONSTRAINT_PRIMARYKEY")
      expect(insert(2, 1, "x")).toBe("SQLITE_CONSTRAINT_UNIQUE")
      expect(insert(2, 2, null)).toBe("SQLITE_CONSTRAINT_NOTNULL")
      expect(insert(2, 100, "x")).toBe("SQLITE_CONSTRAINT_CHECK")
      expect(insert("two", 2, "x")).toBe("SQLITE_MISMATCH")
      expect(codeOf(() => all("insert into child (n) values (9)", []))).toBe("SQLITE_CONSTRAINT_FOREIGNKEY")
      expect(codeOf(() => all("insert into absent (n) values (9)", []))).toBe("SQLITE_ERROR")
      all("pragma query_only = on", [])
      expect(insert(3, 3, "x")).toBe("SQLITE_READONLY")
      all("pragma query_only = off", [])
      all("pragma busy_timeout = 1", [])
      const other = new DatabaseSync(file)
      other.exec("begin immediate")
      expect(insert(3, 3, "x")).toBe("SQLITE_BUSY")
      other.close()
      expect(insert(3, 3, "x")).toBe("no failure")
    })
  )

  it.effect("reports the kind of a refusal, and whether a retry may succeed", () =>
    Effect.gen(function* () {
      const { all, file } = yield* inFile
      all("create table t (n integer unique, text text not null)", [])
      all("insert into t (n, text) values (1, 'x')", [])
      all("pragma busy_timeout = 1", [])
      const kindOf = (text: string) =>
        Effect.map(
          Effect.flip(Effect.try({ try: () => all(text, []), catch: (error) => error as SqlError })),
          ({ isRetryable, reason }) => [reason._tag, isRetryable]
        )
      expect(yield* kindOf("insert into t (n, text) values (1, 'x')")).toEqual(["UniqueViolation", false])
      expect(yield* kindOf("insert into t (n) values (2)")).toEqual(["ConstraintError", false])
      expect(yield* kindOf("select absent from t")).toEqual(["UnknownError", false])
      const other = new DatabaseSync(file)
      other.exec("begin immediate")
      expect(yield* kindOf("insert into t (n, text) values (2, 'x')")).toEqual(["LockTimeoutError", true])
      other.close()
    })
  )

  it.effect("distinguishes a reader overtaken by a write from a reader that waits for the writer", () =>
    Effect.gen(function* () {
      const { all, file } = yield* inFile
      all("create table t (n integer)", [])
      all("begin", [])
      all("select * from t", [])
      const other = new DatabaseSync(file)
      other.exec("insert into t (n) values (1)")
      other.close()
      expect(codeOf(() => all("insert into t (n) values (2)", []))).toBe("SQLITE_BUSY_SNAPSHOT")
      all("rollback", [])
    })
  )

  it.effect("returns text, bytes, numbers and null unchanged", () =>
    Effect.gen(function* () {
      const { all } = yield* inFile
      all("create table t (n integer primary key, text text, bytes blob)", [])
      const bytes = Uint8Array.of(0, 1, 255)
      const text = "a\0b \u{1F511} ''"
      expect(
        all("insert into t (n, text, bytes) values (?, ?, ?) returning n", [2 ** 52, text, bytes])
      ).toEqual([{ n: 2 ** 52 }])
      all("insert into t (n, text, bytes) values (?, ?, ?)", [1, undefined, Buffer.from(bytes)])
      expect(all("select n, text, bytes from t order by n", [])).toEqual([
        { n: 1, text: null, bytes },
        { n: 2 ** 52, text, bytes }
      ])
    })
  )

  it("rejects text that this Node would cut, and changes none", () => {
    expect(() => SqliteConnection.bindable(["whole", "a\0b"], true)).toThrow(
      "cuts a text at a null character"
    )
    expect(SqliteConnection.bindable(["a\0b", undefined, 1n], false)).toEqual(["a\0b", null, 1n])
    expect(SqliteConnection.bindable(["whole", null, Uint8Array.of(0)], true)).toEqual([
      "whole",
      null,
      Uint8Array.of(0)
    ])
  })

  it.effect("returns only numbers equal to the stored ones", () =>
    Effect.gen(function* () {
      const { all } = yield* inFile
      expect(all("select cast(9007199254740993 as text) as n", [])).toEqual([{ n: "9007199254740993" }])
      expect(codeOf(() => all("select 9007199254740993 as n", []))).toBe("ERR_OUT_OF_RANGE")
    })
  )

  it.effect("accepts one statement at a time; a second statement is an error", () =>
    Effect.gen(function* () {
      const { all } = yield* inFile
      all("create table t (n integer); ", [])
      expect(() => all("insert into t (n) values (1); insert into t (n) values (2)", [])).toThrow(SqlError)
      expect(all("select n from t", [])).toEqual([])
    })
  )

  it.effect("has a file by its path, also where that looks like a URI", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const before = process.cwd()
      yield* Effect.acquireRelease(
        Effect.sync(() => process.chdir(folder)),
        () => Effect.sync(() => process.chdir(before))
      )
      const { all } = yield* SqliteConnection.open("file:journal.db?mode=memory")
      all("create table t (n integer)", [])
      expect(readdirSync(folder)).toContain("file:journal.db?mode=memory")
    })
  )
})

const open = (filename: string) => Effect.provide(Sqlite.make({ filename }), Reactivity.layer)

describe("a database of SQLite that is full", () => {
  it.effect("fails the transaction, loses no answered one, and works again once there is room", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "journal.db")
      const sql = yield* open(file)
      yield* sql`create table t (n integer primary key, bytes blob)`
      yield* sql`pragma max_page_count = 300`
      const write = (n: number) =>
        sql.withTransaction(sql`insert into t (n, bytes) values (${n}, zeroblob(200000))`)
      let answered = 0
      let failure: SqlError | null = null
      while (failure === null) {
        const exit = yield* Effect.result(write(answered))
        if (exit._tag === "Failure") failure = exit.failure
        else answered++
      }
      expect(ErrorCode.suffix(failure)).toBe(" (SQLITE_FULL)")
      expect(answered).toBeGreaterThan(2)
      const numbers = Array.from({ length: answered }, (_, n) => ({ n }))
      expect(yield* sql`select n from t order by n`).toEqual(numbers)
      yield* sql`pragma max_page_count = 1000`
      yield* write(answered)
      expect(yield* sql`select count(*) as n from t`).toEqual([{ n: answered + 1 }])
      expect(yield* sql`pragma integrity_check`).toEqual([{ integrity_check: "ok" }])
    })
  )

  it.effect("says that a journal's call has no effect; another failure does not", () =>
    Effect.gen(function* () {
      const sql = yield* open(join(yield* temporaryFolder, "journal.db"))
      yield* sql`create table t (n integer primary key, bytes blob)`
      yield* sql`pragma max_page_count = 10`
      const { transaction } = Store.make(sql, { sealingKey: Redacted.make("key") })
      const failureOf = (bytes: number) =>
        Effect.flip(
          transaction(
            Effect.andThen(
              sql`insert into t values (1, zeroblob(${bytes}))`,
              sql`insert into t values (1, zeroblob(1))`
            )
          )
        )
      expect(yield* failureOf(200_000)).toMatchObject({ isUndone: true })
      expect(yield* failureOf(1)).not.toHaveProperty("isUndone")
    })
  )
})

describe("a database of SQLite that is saved while it is in use", () => {
  it.effect("is saved as of one moment and keeps working", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [file, saved] = [join(folder, "live.db"), join(folder, "saved.db")]
      const sql = yield* open(file)
      yield* sql`create table t (n integer)`
      const pair = (n: number) =>
        sql.withTransaction(
          Effect.andThen(sql`insert into t (n) values (${n})`, sql`insert into t (n) values (${n})`)
        )
      const save = Effect.sync(() => {
        const live = new DatabaseSync(file, { timeout: 5_000 })
        live.exec(`vacuum into '${saved}'`)
        live.close()
      })
      for (let n = 0; n < 50; n++) yield* pair(n)
      yield* Effect.all([...Array.from({ length: 50 }, (_, n) => pair(100 + n)), save], {
        concurrency: "unbounded"
      })
      const copy = yield* open(saved)
      expect(yield* copy`select n from t group by n having count(*) <> 2`).toEqual([])
      const [kept] = yield* copy<{ readonly n: number }>`select count(*) as n from t`
      expect(kept?.n).toBeGreaterThanOrEqual(100)
      expect(yield* sql`select count(*) as n from t`).toEqual([{ n: 200 }])
    })
  )
})

describe("a corrupt database file", () => {
  it.effect("is refused by its code", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const at = (name: string) => join(folder, name)
      writeFileSync(at("garbage"), "not a database, and long enough to be recognized as such ".repeat(50))
      yield* Effect.scoped(
        Effect.map(SqliteConnection.open(at("torn")), ({ all }) => {
          all("create table t (bytes blob)", [])
          all("insert into t (bytes) values (zeroblob(100000))", [])
        })
      )
      truncateSync(at("torn"), 50_000)
      mkdirSync(at("folder"))
      symlinkSync(at("nowhere/at/all"), at("dangling"))
      const codeAt = (name: string) =>
        Effect.match(
          Effect.scoped(
            Effect.flatMap(SqliteConnection.open(at(name)), ({ all }) =>
              Effect.sync(() => codeOf(() => all("select sum(length(bytes)) from t", [])))
            )
          ),
          { onSuccess: (code) => code, onFailure: (error) => ErrorCode.suffix(error).slice(2, -1) }
        )
      expect(yield* codeAt("garbage")).toBe("SQLITE_NOTADB")
      expect(yield* codeAt("torn")).toBe("SQLITE_CORRUPT")
      expect(yield* codeAt("folder")).toBe("SQLITE_CANTOPEN")
      expect(yield* codeAt("dangling")).toBe("SQLITE_CANTOPEN")
    })
  )
})
