import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Runtime from "effect/Runtime"
import * as Scheduler from "effect/Scheduler"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as ResultCode from "./ResultCode.js"
import { connectionOf, type SqliteConnection } from "./SqliteConnection.js"
import * as Turns from "./Turns.js"
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
  /** For statements of the transaction whose turn it is. */
  readonly inside: Connection
  readonly withTransaction: SqlClient.SqlClient["withTransaction"]
  /** The same for an effect that waits for nothing but its statements: it is run in one step when its turn has come. */
  readonly atOnce: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>
  /** Of one that only reads: it waits for no others to be committed with. */
  readonly read: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>
  /** Waits until all that is committed is on the disk. */
  readonly durable: Effect.Effect<void, SqlError>
}

/**
 * When transactions of the fiber are answered. `onDisk`: when the disk has what they wrote, or what they have seen of others
 * that are answered so. `committed`: at once; what they wrote is on the disk with the next one that is answered later, and may
 * be lost with the machine until then, together with all that came after it. `whole`: when the disk has all that was committed
 * before, also by those that did not wait: what they have seen is told outside of the process.
 */
export type Answered = "onDisk" | "committed" | "whole"

export const answered: FiberRef.FiberRef<Answered> = FiberRef.unsafeMake<Answered>("onDisk")

export interface Options {
  readonly durability: Durability
  /** How long a group may grow while the event loop has other work to do, milliseconds; null: it does not wait at all. */
  readonly gatherMillis: number | null
  /** How long a group waits for another process that writes, milliseconds. */
  readonly busyMillis: number
}

/** Why something is not done; null: it is. */
type Failed = SqlError | null

interface Member {
  /** Its turn has come. It says when it has done what it does, and whether the group's transaction is sound after it. */
  readonly begin: (left: (broken: Failed) => void) => void
  /** The group is committed, or not; a member of one that could not begin had no turn. */
  readonly end: (failure: Failed) => void
  /** Whether it has changed something. */
  changes: boolean
  /** Its statement that failed last: where the database undid the whole transaction by itself, that is why. */
  failed: Failed
}

/** More of them wait for the next group: others need the event loop. */
const largest = 64

/** A turn of the event loop that took so long had other work to do. */
const busyTurnMillis = 1

/** Between two tries while another process writes. */
const pauseMillis = 5

const isBusy = (failure: Failed): boolean =>
  failure?.cause instanceof ResultCode.Refused && failure.cause.isBusy

/** What a connection throws is an `SqlError`. */
const failureOf = (step: () => void): Failed => {
  try {
    step()
    return null
  } catch (error) {
    return error as SqlError
  }
}

/** Tries again while another process writes. The thread is not held meanwhile. */
const patiently = (busyMillis: number, step: () => void, done: (failure: Failed) => void): void => {
  const began = performance.now()
  const again = (): void => {
    const failure = failureOf(step)
    if (isBusy(failure) && performance.now() - began < busyMillis) setTimeout(again, pauseMillis)
    else done(failure)
  }
  again()
}

/** Statements that change nothing. Where that cannot be told by the first word, a write too many does no harm. */
const reading = /^\s*(?:select|pragma|explain)\b/i

export const make = (connection: SqliteConnection, options: Options): GroupCommit => {
  const { committed, durable, told } = options.durability
  const turns = Turns.make()
  /** Whose turn it is. */
  let present: Member | null = null
  const waiting: Array<Member> = []
  let gathering = false
  const run = (statement: string): void => void connection.all(statement, [])

  const onDisk = (changes: boolean, when: Answered): Effect.Effect<void, SqlError> =>
    when === "committed" ? Effect.void : changes || when === "whole" ? durable : told

  const outside = connectionOf((text, parameters) =>
    Effect.withFiber((fiber) => {
      const changes = !reading.test(text)
      const when = fiber.getRef(answered)
      let rows: ReadonlyArray<unknown> = []
      const step = () => {
        rows = connection.all(text, parameters)
        if (changes) committed()
      }
      const answer = (failure: Failed) =>
        failure === null ? Effect.andThen(onDisk(changes, when), Effect.succeed(rows)) : Effect.fail(failure)
      if (turns.isFree()) {
        const failure = failureOf(step)
        if (!isBusy(failure)) return answer(failure)
      }
      return Effect.flatMap(
        Effect.callback<Failed>((resume) => {
          const leave = turns.take(() =>
            patiently(options.busyMillis, step, (failure) => {
              turns.release()
              resume(Effect.succeed(failure))
            })
          )
          return Effect.sync(leave)
        }),
        answer
      )
    })
  )

  const inside = connectionOf((text, parameters) =>
    Effect.suspend(() => {
      if (present !== null && !reading.test(text)) present.changes = true
      try {
        return Effect.succeed(connection.all(text, parameters))
      } catch (error) {
        if (present !== null) present.failed = error as SqlError
        return Effect.fail(error as SqlError)
      }
    })
  )

  const finish = (members: ReadonlyArray<Member>, broken: Failed): void => {
    present = null
    const failure = broken ?? failureOf(() => run("commit"))
    // The connection must not be left inside of a transaction.
    if (failure !== null) failureOf(() => run("rollback"))
    else if (members.some(({ changes }) => changes)) committed()
    turns.release()
    for (const member of members) member.end(failure)
  }

  /** The turns of a group's members, one after the other. */
  const commitTogether = (members: ReadonlyArray<Member>): void => {
    let at = 0
    let failure: Failed = null
    const proceed = (): void => {
      while (failure === null && at < members.length) {
        const member = members[at++]
        if (member === undefined) break
        present = member
        let isOver = false
        let isLate = false
        member.begin((broken) => {
          if (isOver) return
          isOver = true
          failure = broken
          if (isLate) proceed()
        })
        isLate = true
        if (!isOver) return
      }
      // Where the database itself undid the transaction, those that had no turn yet are of the next one.
      waiting.unshift(...members.slice(at))
      finish(members.slice(0, at), failure)
      if (waiting.length > 0) gather()
    }
    proceed()
  }

  const nextGroup = (): void => {
    turns.take(() => {
      gathering = false
      const members = waiting.splice(0, largest)
      // The lock of the writer at once: one that is a reader first may fail when it writes.
      patiently(
        options.busyMillis,
        () => run("begin immediate"),
        (failure) => {
          if (failure === null) commitTogether(members)
          else {
            turns.release()
            for (const member of members) member.end(failure)
          }
        }
      )
      if (waiting.length > 0) gather()
    })
  }

  /** A group is complete when the event loop has nothing else to do, or after its time. A single one waits for no timer. */
  const gather = (): void => {
    if (gathering) return
    gathering = true
    const { gatherMillis } = options
    if (gatherMillis === null) {
      nextGroup()
      return
    }
    const began = performance.now()
    const turn = (turnBegan: number, before: number): void =>
      void setImmediate(() => {
        const now = performance.now()
        const isIdle = waiting.length === before && now - turnBegan < busyTurnMillis
        if (isIdle || waiting.length >= largest || now - began >= gatherMillis) nextGroup()
        else turn(now, waiting.length)
      })
    turn(began, waiting.length)
  }

  const enter = (member: Member): void => {
    waiting.push(member)
    gather()
  }

  /** Whether it had not had its turn. */
  const leave = (member: Member): boolean => {
    const at = waiting.indexOf(member)
    if (at >= 0) waiting.splice(at, 1)
    return at >= 0
  }

  const nested = SqlClient.makeWithTransaction({
    transactionTag: SqlClient.TransactionConnection,
    spanAttributes: [],
    acquireConnection: Effect.die(new Error("there is a transaction already")),
    begin: () => Effect.void,
    savepoint: (own: Connection, id) => Effect.asVoid(own.execute(`savepoint s${id}`, [], undefined)),
    commit: () => Effect.void,
    rollback: () => Effect.void,
    rollbackSavepoint: (own, id) => Effect.asVoid(own.execute(`rollback to savepoint s${id}`, [], undefined))
  })

  const begun = (): Failed => failureOf(() => run("savepoint member"))

  /** Ends the savepoint: what failed is undone. A full disk, for one, takes the whole transaction with it, and the savepoint. */
  const ended = ({ failed }: Member, exit: Exit.Exit<unknown, unknown>): Failed => {
    const lost = failureOf(() => {
      if (Exit.isFailure(exit)) run("rollback to savepoint member")
      run("release savepoint member")
    })
    return lost === null ? null : (failed ?? lost)
  }

  const isWithin = (fiber: Fiber.Fiber<unknown, unknown>): boolean =>
    Context.getOption(fiber.context, SqlClient.TransactionConnection)._tag === "Some"

  const first = <R, E, A>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const when = yield* answered
        let left: (broken: Failed) => void = () => undefined
        let outcome: Effect.Effect<void, SqlError> | null = null
        let over: () => void = () => undefined
        const turn = Effect.callback<Member, SqlError>((resume) => {
          let isWanted = true
          const member: Member = {
            begin: (own) => {
              // Interrupted while others of its group had theirs, who would wait for it for ever.
              if (!isWanted) return own(null)
              left = own
              resume(Effect.succeed(member))
            },
            end: (failure) => {
              outcome = failure === null ? Effect.void : Effect.fail(failure)
              if (failure !== null) resume(Effect.fail(failure))
              over()
            },
            changes: false,
            failed: null
          }
          enter(member)
          return Effect.sync(() => {
            isWanted = false
            if (!leave(member)) left(null)
          })
        })
        const member = yield* restore(turn)
        const context = yield* Effect.context<R>()
        const unsound = begun()
        const own = Context.add(context, SqlClient.TransactionConnection, [inside, 0])
        const exit: Exit.Exit<A, E | SqlError> =
          unsound === null
            ? yield* Effect.exit(Effect.provide(restore(effect), own))
            : Exit.fail<SqlError>(unsound)
        left(unsound ?? ended(member, exit))
        yield* Effect.callback<void, SqlError>((resume) => {
          over = () => outcome !== null && resume(outcome)
          over()
        })
        yield* onDisk(member.changes, when)
        return yield* exit
      })
    )

  /** Contexts of fibers with the transaction in them: all that is in one is copied to add to it. */
  const contexts = new WeakMap<Context.Context<never>, Context.Context<never>>()
  const contextOf = (fiber: Fiber.Fiber<unknown, unknown>): Context.Context<never> => {
    const known = contexts.get(fiber.context)
    if (known !== undefined) return known
    const made = Context.add(fiber.context, SqlClient.TransactionConnection, [inside, 0])
    contexts.set(fiber.context, made)
    return made
  }

  /** Runs the effect, which never waits, on a fiber of its own with all that this one has. */
  const stepOf = <A, E>(
    fiber: Fiber.Fiber<unknown, unknown>,
    effect: Effect.Effect<A, E>
  ): (() => Exit.Exit<A, E>) => {
    const context = contextOf(fiber)
    const runtimeFlags = Runtime.defaultRuntimeFlags
    const runtime = context
    return () => Effect.runSyncExitWith(runtime)(effect)
  }

  const entered = <A, E>(step: () => Exit.Exit<A, E>, when: Answered): Effect.Effect<A, E | SqlError> =>
    Effect.callback((resume) => {
      let exit: Exit.Exit<A, E> | null = null
      let over: (() => void) | null = () => undefined
      const member: Member = {
        begin: (left) => {
          const unsound = begun()
          if (unsound !== null) return left(unsound)
          exit = step()
          left(ended(member, exit))
        },
        end: (failure) => {
          if (failure !== null) resume(Effect.fail(failure))
          else if (exit !== null)
            resume(Effect.uninterruptible(Effect.andThen(onDisk(member.changes, when), exit)))
          over?.()
          over = null
        },
        changes: false,
        failed: null
      }
      enter(member)
      // Beside others that take their time it may have had its turn, and is not committed.
      return Effect.callback<void>((left) => {
        if (leave(member) || over === null) left(Effect.void)
        else over = () => left(Effect.void)
      })
    })

  const atOnce: GroupCommit["atOnce"] = (effect) =>
    Effect.withFiber((fiber) =>
      isWithin(fiber) ? nested(effect) : entered(stepOf(fiber, effect), fiber.getRef(answered))
    )

  return {
    outside,
    inside,
    withTransaction: (effect) =>
      // Statements are synchronous: another connection of this process that waits for the lock would hold the very thread
      // that has to end the transaction, if the event loop turned in between.
      Effect.provideService(
        Effect.withFiber((fiber) => (isWithin(fiber) ? nested(effect) : first(effect))),
        Scheduler.Scheduler,
        Scheduler.defaultScheduler
      ),
    atOnce,
    durable,
    read: (effect) =>
      Effect.withFiber((fiber) => {
        if (isWithin(fiber) || !turns.isFree()) return atOnce(effect)
        // One look at the database: a tool may write to it between two statements.
        const step = stepOf(fiber, effect)
        const began = failureOf(() => run("begin"))
        if (began !== null) return Effect.fail(began)
        const exit = step()
        const ended = failureOf(() => run("commit"))
        if (ended === null) return Effect.andThen(onDisk(false, fiber.getRef(answered)), exit)
        failureOf(() => run("rollback"))
        return Effect.fail(ended)
      })
  }
}
