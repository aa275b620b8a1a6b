import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as GroupCommit from "../../../../src/adapters/sql/sqlite/GroupCommit.js"
import * as Sqlite from "../../../../src/adapters/sql/sqlite/Sqlite.js"
import * as SqliteConnection from "../../../../src/adapters/sql/sqlite/SqliteConnection.js"
import * as WriteAheadLog from "../../../../src/adapters/sql/sqlite/WriteAheadLog.js"
import { temporaryFolder } from "../../../support/journal/Layers.js"

const many = Array.from({ length: 20 }, (_, n) => n)

/** Every fiber that can continue without the disk has done so. */
const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve))).pipe(
  Effect.repeat({ times: 20 })
)

/** A connection of SQLite, the group commit over it, and what is done in its order: commits, and what the tests add. */
const setup = Effect.gen(function* () {
  const done: Array<string> = []
  const filename = join(yield* temporaryFolder, "group.db")
  const connection = yield* SqliteConnection.open(filename)
  const counted: SqliteConnection.SqliteConnection = {
    all: (sql, parameters) => {
      if (["begin immediate", "commit", "rollback"].includes(sql)) done.push(sql)
      return connection.all(sql, parameters)
    }
  }
  /** Pending writes of the log. */
  const writes: Array<(error: Error | null) => void> = []
  const disk = { isHeld: false }
  const durability = WriteAheadLog.durability((end) => {
    done.push("disk")
    if (disk.isHeld) writes.push(end)
    else setImmediate(end, null)
  })
  // A fiber left waiting after a failed test would keep the test waiting.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      disk.isHeld = false
      for (const end of writes.splice(0)) end(null)
    })
  )
  // A group that waited for a timer would keep the test waiting for longer than it has.
  const group = GroupCommit.make(counted, {
    durability,
    gatherMillis: 600_000,
    busyMillis: 1_000
  })
  const run = (sql: string) => Effect.sync(() => connection.all(sql, []))
  yield* run("create table t (n integer primary key)")
  yield* run("create table parent (id integer primary key)")
  yield* run("create table child (id integer references parent (id) deferrable initially deferred)")
  /** Uses the connection of its transaction. */
  const insert = (n: number) =>
    Effect.flatMap(Effect.serviceOption(group.transactions), (own) =>
      Option.match(own, { onNone: () => group.outside, onSome: ([it]) => it }).execute(
        `insert into t (n) values (${n})`,
        [],
        undefined
      )
    )
  /** Uses the connection of its transaction too. */
  const seen = Effect.flatMap(Effect.serviceOption(group.transactions), (own) =>
    Effect.map(Option.getOrThrow(own)[0].execute("select n from t", [], undefined), (found) =>
      found.map(({ n }) => Number(n))
    )
  )
  const rows = Effect.map(run("select n from t order by n"), (found) => found.map(({ n }) => Number(n)))
  return { disk, done, insert, rows, run, seen, writes, ...group }
}).pipe(Effect.provide(Reactivity.layer))

describe("transactions of one turn of the event loop", { timeout: 60_000 }, () => {
  it.live("commit together, and none is answered before", () =>
    Effect.gen(function* () {
      const { done, insert, rows, withTransaction } = yield* setup
      yield* Effect.forEach(
        many,
        (n) => Effect.tap(withTransaction(insert(n)), () => Effect.sync(() => done.push("answered"))),
        { concurrency: "unbounded" }
      )
      expect(done).toEqual(["begin immediate", "commit", "disk", ...many.map(() => "answered")])
      expect(yield* rows).toEqual(many)
      yield* withTransaction(insert(100))
      expect(done.slice(-3)).toEqual(["begin immediate", "commit", "disk"])
    })
  )

  it.live("fail for themselves", () =>
    Effect.gen(function* () {
      const { done, insert, rows, withTransaction } = yield* setup
      const exits = yield* Effect.forEach(
        many,
        (n) => Effect.exit(withTransaction(Effect.andThen(insert(n), insert(n % 3 === 0 ? n : 1_000 + n)))),
        { concurrency: "unbounded" }
      )
      expect(exits.map(Exit.isSuccess)).toEqual(many.map((n) => n % 3 !== 0))
      expect((yield* rows).filter((n) => n < 1_000)).toEqual(many.filter((n) => n % 3 !== 0))
      expect(done).toEqual(["begin immediate", "commit", "disk"])
    })
  )

  it.live("may have transactions within them, each undone for itself", () =>
    Effect.gen(function* () {
      const { insert, rows, withTransaction } = yield* setup
      yield* withTransaction(
        Effect.gen(function* () {
          yield* insert(1)
          yield* Effect.ignore(withTransaction(Effect.andThen(insert(2), Effect.fail("undone"))))
          yield* withTransaction(insert(3))
        })
      )
      expect(yield* rows).toEqual([1, 3])
    })
  )

  it.live("may have several transactions within them at a time, each undone for itself", () =>
    Effect.gen(function* () {
      const { insert, rows, withTransaction } = yield* setup
      const part = (n: number) =>
        withTransaction(
          Effect.gen(function* () {
            yield* insert(n)
            yield* Effect.yieldNow
            if (n % 2 === 0) yield* Effect.fail("no")
          })
        ).pipe(Effect.ignore)
      yield* withTransaction(Effect.forEach(many, part, { concurrency: "unbounded" }))
      expect(yield* rows).toEqual(many.filter((n) => n % 2 === 1))
    })
  )

  it.live("all fail when their commit does, and the next ones succeed", () =>
    Effect.gen(function* () {
      const { insert, rows, run, withTransaction } = yield* setup
      const orphan = run("insert into child (id) values (7)")
      const exits = yield* Effect.forEach(
        [insert(1), orphan, insert(2)],
        (effect) => Effect.exit(withTransaction(effect)),
        { concurrency: "unbounded" }
      )
      expect(exits.map(Exit.isSuccess)).toEqual([false, false, false])
      expect(yield* rows).toEqual([])
      yield* withTransaction(insert(3))
      expect(yield* rows).toEqual([3])
    })
  )

  it.live("all fail when the database rolls them back; later ones are done", () =>
    Effect.gen(function* () {
      const { insert, rows, run, withTransaction } = yield* setup
      const exits = yield* Effect.forEach(
        [insert(1), run("rollback"), insert(2), insert(3)],
        (effect) => Effect.exit(withTransaction(effect)),
        { concurrency: "unbounded" }
      )
      expect(exits.map(Exit.isSuccess)).toEqual([false, false, true, true])
      expect(yield* rows).toEqual([2, 3])
    })
  )

  it.live("interrupted before their turn write nothing", () =>
    Effect.gen(function* () {
      const { done, insert, rows, withTransaction } = yield* setup
      const waiting = yield* Effect.forkChild(withTransaction(insert(1)))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting)
      yield* withTransaction(insert(2))
      expect(yield* rows).toEqual([2])
      expect(done).toEqual(["begin immediate", "commit", "disk"])
    })
  )

  it.live("commit together and in order, also next to a transaction that waits for something else", () =>
    Effect.gen(function* () {
      const { done, insert, rows, withTransaction } = yield* setup
      const exits = yield* Effect.all(
        [Effect.andThen(settled, insert(1)), insert(1), insert(2)].map((effect) =>
          Effect.exit(withTransaction(effect))
        ),
        { concurrency: "unbounded" }
      )
      expect(exits.map(Exit.isSuccess)).toEqual([true, false, true])
      expect(yield* rows).toEqual([1, 2])
      expect(done).toEqual(["begin immediate", "commit", "disk"])
    })
  )

  it.live("interrupted after their turn are over when the interrupter continues", () =>
    Effect.gen(function* () {
      const { done, insert, rows, withTransaction } = yield* setup
      const step = yield* Effect.forkChild(withTransaction(insert(1)))
      const open = yield* Deferred.make<void>()
      const beside = yield* Effect.forkChild(withTransaction(Effect.andThen(Deferred.await(open), insert(2))))
      yield* settled
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(step))
      yield* settled
      expect(done).toEqual(["begin immediate"])
      expect(interrupting.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(interrupting)
      expect(done).toContain("commit")
      yield* Fiber.join(beside)
      expect(yield* rows).toEqual([1, 2])
    })
  )

  it.live("reads see committed rows immediately, and return once the disk has them", () =>
    Effect.gen(function* () {
      const { disk, done, insert, outside, read, seen, withTransaction, writes } = yield* setup
      const look = read(seen)
      yield* withTransaction(insert(1))
      done.length = 0
      expect(yield* look).toEqual([1])
      expect(done).toEqual(["commit"])
      const open = yield* Deferred.make<void>()
      const writer = yield* Effect.forkChild(withTransaction(Effect.andThen(insert(2), Deferred.await(open))))
      yield* settled
      disk.isHeld = true
      const reader = yield* Effect.forkChild(look)
      yield* settled
      expect(reader.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(open, undefined)
      yield* settled
      expect(reader.pollUnsafe()).toBeUndefined()
      writes.shift()?.(null)
      expect(yield* Fiber.join(reader)).toEqual([1, 2])
      yield* Fiber.join(writer)
      yield* outside.execute("select n from t", [], undefined)
      expect(writes).toEqual([])
    })
  )

  it.live("interrupted transactions write nothing and block no other", () =>
    Effect.gen(function* () {
      const { insert, rows, withTransaction } = yield* setup
      const waiting = yield* Effect.forkChild(withTransaction(insert(1)))
      const inside = yield* Effect.forkChild(withTransaction(Effect.andThen(insert(2), Effect.never)))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting)
      const next = yield* Effect.forkChild(withTransaction(insert(3)))
      yield* Effect.forkChild(Fiber.interrupt(inside))
      yield* Fiber.join(next)
      expect(yield* rows).toEqual([3])
    })
  )

  it.live("interrupted during the turn of their group block no other", () =>
    Effect.gen(function* () {
      const { insert, rows, withTransaction } = yield* setup
      const open = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(withTransaction(Effect.andThen(Deferred.await(open), insert(1))))
      const second = yield* Effect.forkChild(withTransaction(insert(2)))
      yield* settled
      yield* Fiber.interrupt(second)
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(first)
      yield* withTransaction(insert(3))
      expect(yield* rows).toEqual([1, 3])
    })
  )

  it.live("exclude statements outside of a transaction", () =>
    Effect.gen(function* () {
      const { insert, outside, withTransaction } = yield* setup
      const told: Array<ReadonlyArray<unknown>> = []
      const look = Effect.map(outside.execute("select n from t", [], undefined), (found) => told.push(found))
      yield* Effect.all(
        [
          withTransaction(
            Effect.gen(function* () {
              yield* insert(1)
              yield* Effect.forkScoped(look)
              yield* Effect.yieldNow
              expect(told).toEqual([])
            })
          ),
          withTransaction(Effect.fail("undone")).pipe(Effect.ignore)
        ],
        { concurrency: "unbounded" }
      )
      yield* look
      expect(told.every((found) => found.length === 1)).toBe(true)
    })
  )

  it.live("are answered when the disk has them, and so are their readers", () =>
    Effect.gen(function* () {
      const { disk, insert, outside, withTransaction, writes } = yield* setup
      const answered: Array<string> = []
      const tell = (name: string) => Effect.sync(() => answered.push(name))
      disk.isHeld = true
      const writer = yield* Effect.forkChild(Effect.andThen(withTransaction(insert(1)), tell("writer")))
      yield* settled
      const look = outside.execute("select n from t", [], undefined)
      const reader = yield* Effect.forkChild(Effect.tap(look, () => tell("reader")))
      const early = yield* Effect.forkChild(
        Effect.andThen(
          Effect.provideService(withTransaction(insert(2)), GroupCommit.answered, "committed"),
          tell("early")
        )
      )
      yield* settled
      expect(answered).toEqual(["early"])
      expect(writes).toHaveLength(1)
      const late = yield* Effect.forkChild(Effect.andThen(withTransaction(insert(3)), tell("late")))
      yield* settled
      writes.shift()?.(null)
      yield* Fiber.join(writer)
      yield* settled
      // The next disk write carries commits made during this one.
      expect(answered).not.toContain("late")
      expect(writes).toHaveLength(1)
      writes.shift()?.(null)
      yield* Effect.all([Fiber.join(reader), Fiber.join(early), Fiber.join(late)])
      disk.isHeld = false
      yield* look
      expect(writes).toEqual([])
    })
  )

  it.live("reads answer after the writes they saw of a transaction about to wait for the disk", () =>
    Effect.gen(function* () {
      const { disk, insert, read, seen, withTransaction, writes } = yield* setup
      disk.isHeld = true
      const early = Effect.provideService(withTransaction(insert(1)), GroupCommit.answered, "committed")
      // Answered before the other one of its group, it reads what that one has written.
      const reader = yield* Effect.forkChild(Effect.andThen(early, read(seen)))
      const writer = yield* Effect.forkChild(withTransaction(insert(2)))
      yield* settled
      expect([reader.pollUnsafe(), writer.pollUnsafe()]).toEqual([undefined, undefined])
      writes.shift()?.(null)
      expect(yield* Fiber.join(reader)).toEqual([1, 2])
      yield* Fiber.join(writer)
    })
  )

  it.live("all fail from a write on that the disk refused", () =>
    Effect.gen(function* () {
      const { disk, insert, outside, withTransaction, writes } = yield* setup
      disk.isHeld = true
      const writers = yield* Effect.forkChild(
        Effect.forEach([1, 2], (n) => Effect.exit(withTransaction(insert(n))), { concurrency: "unbounded" })
      )
      yield* settled
      const late = yield* Effect.forkChild(Effect.exit(withTransaction(insert(3))))
      yield* settled
      writes.shift()?.(new Error("EIO"))
      const exits = [...(yield* Fiber.join(writers)), yield* Fiber.join(late)]
      disk.isHeld = false
      exits.push(yield* Effect.exit(withTransaction(insert(4))))
      exits.push(yield* Effect.exit(outside.execute("select n from t", [], undefined)))
      expect(exits.map(Exit.isFailure)).toEqual([true, true, true, true, true])
    })
  )

  it.live("reads do not write", () =>
    Effect.gen(function* () {
      const { done, outside, seen, withTransaction } = yield* setup
      yield* withTransaction(seen)
      yield* outside.execute("select n from t", [], undefined)
      expect(done).toEqual(["begin immediate", "commit"])
    })
  )

  it.live("interrupted during a disk write are over when it ends", () =>
    Effect.gen(function* () {
      const { disk, insert, rows, withTransaction, writes } = yield* setup
      disk.isHeld = true
      const writer = yield* Effect.forkChild(withTransaction(insert(1)))
      yield* settled
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(writer))
      yield* settled
      expect(interrupting.pollUnsafe()).toBeUndefined()
      writes.shift()?.(null)
      yield* Fiber.join(interrupting)
      expect(yield* rows).toEqual([1])
    })
  )

  it.live("are closed to fibers that outlive them", () =>
    Effect.gen(function* () {
      const { insert, read, rows, seen, withTransaction } = yield* setup
      const open = yield* Deferred.make<void>()
      const late = (effect: Effect.Effect<unknown, unknown>) =>
        Effect.forkScoped(Effect.exit(Effect.andThen(Deferred.await(open), effect)))
      const own = [yield* withTransaction(late(insert(1))), yield* read(late(Effect.orDie(seen)))]
      own.push(yield* withTransaction(late(withTransaction(insert(2)))))
      yield* Deferred.succeed(open, undefined)
      const exits = yield* Effect.forEach(own, Fiber.join)
      expect(exits.map(Exit.isFailure)).toEqual([true, true, true])
      expect(yield* rows).toEqual([])
    })
  )

  it.live("all end, despite interrupts and concurrent transactions", () =>
    Effect.gen(function* () {
      const { insert, outside, read, rows, seen, withTransaction } = yield* setup
      const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      const turns = (count: number) => Effect.repeat(turn, { times: count })
      /** Numbers of the writers that were answered. */
      const told: Array<number> = []
      const write = (n: number, effect: Effect.Effect<unknown, unknown, Scope.Scope>) =>
        Effect.tap(withTransaction(Effect.andThen(effect, insert(n))), () => Effect.sync(() => told.push(n)))
      const ways: ReadonlyArray<(n: number) => Effect.Effect<unknown, unknown, Scope.Scope>> = [
        (n) => write(n, Effect.void),
        (n) => write(n, turns(n % 4)),
        (n) => write(n, Effect.when(Effect.fail("undone"), Effect.succeed(n % 2 === 0))),
        () => read(seen),
        () => read(Effect.andThen(turn, seen)),
        () => outside.execute("select n from t", [], undefined)
      ]
      const fibers = yield* Effect.forEach(
        Array.from({ length: 600 }, (_, n) => n),
        (n) =>
          Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(
              Effect.andThen(turns(n % 7), ways[n % ways.length]?.(n) ?? turn)
            )
            if (n % 5 === 0) yield* Effect.forkChild(Effect.andThen(turns(n % 11), Fiber.interrupt(fiber)))
            return fiber
          })
      )
      yield* Effect.forEach(fibers, Fiber.await)
      const there = new Set(yield* rows)
      expect(told.filter((n) => !there.has(n))).toEqual([])
      expect(told.length).toBeGreaterThan(100)
    })
  )

  it.live("wait for another process that writes, and the event loop turns meanwhile", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "shared.db")
      const client = Effect.provide(Sqlite.make({ filename }), Reactivity.layer)
      const [one, other] = [yield* client, yield* client]
      yield* one`create table t (n integer)`
      // On a separate fiber: inside one client's transaction, another client would join it.
      const elsewhere = Effect.runFork(one.withTransaction(Effect.andThen(one`select 1`, Effect.sleep(100))))
      yield* Effect.yieldNow.pipe(Effect.repeat({ times: 20 }))
      yield* other.withTransaction(other`insert into t (n) values (1)`)
      yield* Fiber.join(elsewhere)
      expect(yield* one`select n from t`).toEqual([{ n: 1 }])
    })
  )
})
