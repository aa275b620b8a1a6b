import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as Scheduler from "effect/Scheduler"
import type { Durability } from "./WriteAheadLog.js"

/**
 * Transactions of many fibers on one connection of SQLite, committed together: those that are ready in one turn of the
 * event loop share a transaction of the database, each in a savepoint of its own, and one write to the disk. None of
 * them is answered before what it wrote, and what it has seen, is on the disk, nor sees what another one wrote and did
 * not commit.
 */
export interface GroupCommit {
  /** For statements that are in no transaction: none of them falls into one of somebody else's. */
  readonly outside: Connection
  readonly withTransaction: SqlClient.SqlClient["withTransaction"]
}

/**
 * Transactions of the fiber are answered as soon as they are committed: they are on the disk with the next one that is
 * answered later. What they write may be lost with the machine, together with all that came after it.
 */
export const untilNext: FiberRef.FiberRef<boolean> = FiberRef.unsafeMake(false)

export interface Options {
  readonly durability: Durability
  /** How long a group may grow while the event loop has other work to do, milliseconds; null: it does not wait at all. */
  readonly gatherMillis: number | null
  /** How long a group waits for another process that writes, milliseconds. */
  readonly busyMillis: number
}

interface Member {
  /** Its turn has come; or the group could not begin. */
  readonly turn: Deferred.Deferred<Group, SqlError>
  /** Whether the transaction is sound after it. */
  readonly left: Deferred.Deferred<void, SqlError>
  /** Whether it has changed something. */
  changes: boolean
}

interface Group {
  readonly committed: Deferred.Deferred<void, SqlError>
}

/** More of them wait for the next group: others need the event loop. */
const largest = 64

/** A turn of the event loop that took so long had other work to do. */
const busyTurnMillis = 1

const nextTurn = Effect.async<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

const pause = Effect.async<void>((resume) => {
  setTimeout(() => resume(Effect.void), 5)
})

const isBusy = ({ cause }: SqlError): boolean =>
  typeof cause === "object" && cause !== null && "code" in cause && cause.code === "SQLITE_BUSY"

/** Tries again while another process writes. The thread is not held meanwhile. */
const patiently =
  (busyMillis: number) =>
  <A>(statement: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
    Effect.suspend(() => {
      const began = performance.now()
      const again: Effect.Effect<A, SqlError> = Effect.catchAll(statement, (error) =>
        isBusy(error) && performance.now() - began < busyMillis
          ? Effect.zipRight(pause, again)
          : Effect.fail(error)
      )
      return again
    })

/** Statements that change nothing. Where that cannot be told by the first word, a write too many does no harm. */
const reading = /^\s*(?:select|pragma|explain)\b/i

/** One function, though a long one: all of it takes turns on the same connection and the same queue. */
export const make = (connection: Connection, options: Options): GroupCommit => {
  const { committed, durable, told } = options.durability
  const turns = Effect.unsafeMakeSemaphore(1)
  const wait = patiently(options.busyMillis)
  /** Whose turn it is. */
  let present: Member | null = null
  const waiting: Array<Member> = []
  let running = false
  const run = (statement: string) => Effect.asVoid(connection.execute(statement, [], undefined))

  /** The connection, each of whose statements is run in that way. */
  const each = (
    way: <A>(text: string, statement: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>
  ): Connection => ({
    execute: (text, ...rest) => way(text, connection.execute(text, ...rest)),
    executeRaw: (text, ...rest) => way(text, connection.executeRaw(text, ...rest)),
    executeValues: (text, ...rest) => way(text, connection.executeValues(text, ...rest)),
    executeUnprepared: (text, ...rest) =>
      way(
        text,
        Effect.suspend(() => connection.executeUnprepared(text, ...rest))
      ),
    executeStream: (...args) => connection.executeStream(...args)
  })

  const onDisk = (changes: boolean) =>
    changes ? Effect.flatMap(FiberRef.get(untilNext), (early) => (early ? Effect.void : durable)) : told

  const outside = each((text, statement) => {
    const changes = !reading.test(text)
    const done = changes ? Effect.tap(wait(statement), () => Effect.sync(committed)) : wait(statement)
    return Effect.zipLeft(turns.withPermits(1)(done), onDisk(changes))
  })

  const inside = each((text, statement) => {
    if (present !== null && !reading.test(text)) present.changes = true
    return statement
  })

  /** A group is complete when the event loop has nothing else to do, or after its time. A single one waits for no timer. */
  const gather = Effect.gen(function* () {
    if (options.gatherMillis === null) return
    const began = performance.now()
    for (let turnBegan = began; turnBegan - began < options.gatherMillis; ) {
      const before = waiting.length
      yield* nextTurn
      const now = performance.now()
      if (waiting.length >= largest) return
      if (waiting.length === before && now - turnBegan < busyTurnMillis) return
      turnBegan = now
    }
  })

  /** Takes the lock of the writer at once: one that is a reader first may fail when it writes. */
  const begin = wait(run("begin immediate"))

  const rollback = Effect.ignore(run("rollback"))

  const commitTogether = (members: ReadonlyArray<Member>) =>
    Effect.gen(function* () {
      const began = yield* Effect.exit(begin)
      if (Exit.isFailure(began)) {
        for (const { turn } of members) yield* Deferred.failCause(turn, began.cause)
        return
      }
      const group: Group = { committed: Deferred.unsafeMake(FiberId.none) }
      const rest = [...members]
      let exit: Exit.Exit<void, SqlError> = Exit.void
      while (rest.length > 0 && Exit.isSuccess(exit)) {
        const member = rest.shift()
        if (member === undefined) break
        present = member
        yield* Deferred.succeed(member.turn, group)
        exit = yield* Effect.exit(Deferred.await(member.left))
      }
      // Where the database itself undid the transaction, those that had no turn yet are of the next one.
      waiting.unshift(...rest)
      if (Exit.isSuccess(exit)) exit = yield* Effect.exit(run("commit"))
      if (Exit.isSuccess(exit) && members.some(({ changes }) => changes)) committed()
      // The connection must not be left inside of a transaction.
      if (Exit.isFailure(exit)) yield* rollback
      yield* Deferred.done(group.committed, exit)
    })

  const drain: Effect.Effect<void> = Effect.gen(function* () {
    while (waiting.length > 0) {
      yield* gather
      yield* turns.withPermits(1)(Effect.suspend(() => commitTogether(waiting.splice(0, largest))))
    }
    running = false
  })

  const enter = (member: Member) =>
    Effect.suspend(() => {
      waiting.push(member)
      if (running) return Effect.void
      running = true
      return Effect.asVoid(Effect.forkDaemon(Effect.interruptible(drain)))
    })

  const leave = (member: Member) =>
    Effect.suspend(() => {
      const at = waiting.indexOf(member)
      if (at >= 0) waiting.splice(at, 1)
      return Deferred.succeed(member.left, undefined)
    })

  /** The effect in a savepoint; undone when it fails. */
  const inSavepoint =
    (member: Member) =>
    <A, E>(effect: Effect.Effect<A, E>, failed: (exit: Exit.Exit<A, E>) => boolean) =>
      Effect.gen(function* () {
        const sound = yield* Effect.exit(run("savepoint member"))
        if (Exit.isFailure(sound)) {
          yield* Deferred.failCause(member.left, sound.cause)
          return yield* Effect.failCause(sound.cause)
        }
        const exit = yield* Effect.exit(effect)
        const end = failed(exit)
          ? Effect.zipRight(run("rollback to savepoint member"), run("release savepoint member"))
          : run("release savepoint member")
        yield* Deferred.done(member.left, yield* Effect.exit(end))
        return yield* exit
      })

  const nested = SqlClient.makeWithTransaction({
    transactionTag: SqlClient.TransactionConnection,
    spanAttributes: [],
    acquireConnection: Effect.dieMessage("there is a transaction already"),
    begin: () => Effect.void,
    savepoint: (own: Connection, id) => Effect.asVoid(own.execute(`savepoint s${id}`, [], undefined)),
    commit: () => Effect.void,
    rollback: () => Effect.void,
    rollbackSavepoint: (own, id) => Effect.asVoid(own.execute(`rollback to savepoint s${id}`, [], undefined))
  })

  const first = <R, E, A>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const member: Member = {
          turn: Deferred.unsafeMake(FiberId.none),
          left: Deferred.unsafeMake(FiberId.none),
          changes: false
        }
        yield* enter(member)
        const group = yield* Effect.onExit(restore(Deferred.await(member.turn)), (exit) =>
          Exit.isFailure(exit) ? leave(member) : Effect.void
        )
        const context = yield* Effect.context<R>()
        const own = Effect.provide(
          restore(effect),
          Context.add(context, SqlClient.TransactionConnection, [inside, 0])
        )
        const exit = yield* Effect.exit(inSavepoint(member)(own, Exit.isFailure))
        yield* Deferred.await(group.committed)
        yield* onDisk(member.changes)
        return yield* exit
      })
    )

  return {
    outside,
    withTransaction: (effect) =>
      // Statements are synchronous: another connection of this process that waits for the lock would hold the very thread
      // that has to end the transaction, if the event loop turned in between.
      Effect.withScheduler(
        Effect.flatMap(Effect.serviceOption(SqlClient.TransactionConnection), ({ _tag }) =>
          _tag === "Some" ? nested(effect) : first(effect)
        ),
        Scheduler.defaultScheduler
      )
  }
}
