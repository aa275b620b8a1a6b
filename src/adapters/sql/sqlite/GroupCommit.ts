import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { TracerEnabled } from "effect/References"
import type * as Reactivity from "effect/reactivity/Reactivity"
import { PreventSchedulerYield } from "effect/Scheduler"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import * as ResultCode from "./ResultCode.js"
import { connectionOf, type SqliteConnection } from "./SqliteConnection.js"
import type { Durability } from "./WriteAheadLog.js"

/**
 * Group commit: transactions of many fibers on one SQLite connection that are ready in one turn of the event loop share a
 * database transaction, each in its own savepoint, and one disk write. No member is answered before its writes and the
 * commits it has seen are on the disk, and no member sees another's uncommitted writes.
 */
export interface GroupCommit {
  /** The fiber's transaction: its connection and nesting depth. */
  readonly transactions: Transactions
  /** For statements outside of a transaction: none runs inside another fiber's transaction. */
  readonly outside: Connection
  /** All other work waits while the effect waits for anything but its statements. */
  readonly withTransaction: SqlClient.SqlClient["withTransaction"]
  /** Likewise for a read-only transaction, which joins no group. */
  readonly read: SqlClient.SqlClient["withTransaction"]
  /** Likewise for statements that need no common snapshot. */
  readonly query: SqlClient.SqlClient["withTransaction"]
  /** Waits until every commit is on the disk. */
  readonly durable: Effect.Effect<void, SqlError>
}

/**
 * When a fiber's transaction is answered. `onDisk`: once its writes, and the writes that it has seen of others except
 * `committed` ones, are on the disk. `committed`: immediately; its writes reach the disk with the next commit of another kind,
 * until when a crash of the machine may lose them, with all later ones. `whole`: once all earlier commits are on the disk,
 * `committed` ones too, because their content leaves the process.
 */
export type Answered = "onDisk" | "committed" | "whole"

export const answered: Context.Reference<Answered> = Context.Reference<Answered>("castellan/sql/Answered", {
  defaultValue: () => "onDisk"
})

export interface Options {
  readonly durability: Durability
  /** Longest growth of a group while the event loop is busy, in ms; null: it does not wait. */
  readonly gatherMillis: number | null
  /** Wait of a group for another writing process, in ms. */
  readonly busyMillis: number
}

interface State {
  changes: boolean
  /** Its last failed statement: the cause, if the database rolled the whole transaction back. */
  failed: SqlError | null
  isOver: boolean
}

interface Member {
  readonly state: State
  readonly when: Answered
  /** Runs the member unless it was interrupted. Its failure does not fail the group. */
  readonly turn: Effect.Effect<Exit.Exit<unknown, unknown>>
  /** Called with the group's outcome. If the group could not begin, its members have not run. */
  readonly end: (group: Exit.Exit<void, SqlError>) => void
}

/** Most members of a group: the event loop has other work. */
const largest = 64

/** A longer turn of the event loop had other work. */
const busyTurnMillis = 1

/** Pause between attempts while another process writes. */
const pauseMillis = 5

const isBusy = ({ reason }: SqlError): boolean =>
  reason.cause instanceof ResultCode.Refused && reason.cause.isBusy

const reading = /^\s*(?:select|pragma|explain)\b/i

type Transactions = Context.Service<SqlClient.TransactionConnection, SqlClient.TransactionConnection.Service>

let clients = 0

/** Error of a fiber that outlives the transaction it was started in. */
const over = new SqlError({
  reason: new UnknownError({ cause: null, message: "the transaction of the statement is over" })
})

/** Connections throw `SqlError`s. */
const attempt = <A>(step: () => A): Effect.Effect<A, SqlError> =>
  Effect.try({ try: step, catch: (error) => error as SqlError })

const turnOfLoop = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

const pause = Effect.callback<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), pauseMillis)
  return Effect.sync(() => clearTimeout(timer))
})

/**
 * The holder of the connection does not yield the thread: another connection of this process that waits for the lock would
 * block the thread that has to end the transaction.
 */
const steadied = <R>(context: Context.Context<R>): Context.Context<R> =>
  context.pipe(
    Context.add(PreventSchedulerYield, true),
    // Statements' spans contain their text: disabled in transactions.
    Context.add(TracerEnabled, false)
  )

const steady = steadied(Context.empty())

/** A client whose transactions need not wait for anything but the thread. */
export interface SqliteClient extends SqlClient.SqlClient, Pick<GroupCommit, "durable" | "query" | "read"> {
  /**
   * A statement by its text and values. Effect's statement costs a span, a scope and a transformer each time: the client uses
   * it only with a transformer.
   */
  readonly statement: <Row extends object>(
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError>
}

export const client = (group: GroupCommit): Effect.Effect<SqliteClient, never, Reactivity.Reactivity> => {
  const { durable, outside, query, read, transactions, withTransaction } = group
  const made = SqlClient.make({
    acquirer: Effect.succeed(outside),
    borrower: (use) => use(outside),
    compiler: Statement.makeCompilerSqlite(),
    driver: "sqlite-node",
    transactionService: transactions,
    spanAttributes: [["db.system.name", "sqlite"]]
  })
  return Effect.map(made, (client) => {
    const statement: SqliteClient["statement"] = (text, values) =>
      Effect.withFiber((fiber) => {
        if (fiber.getRef(Statement.CurrentTransformer) !== undefined) return client.unsafe(text, values)
        const [own] = Context.getOrUndefined(fiber.context, transactions) ?? [outside]
        return own.execute(text, values, undefined)
      })
    return Object.assign(client, { withTransaction, durable, query, read, statement })
  })
}

export const make = (connection: SqliteConnection, options: Options): GroupCommit => {
  const { committed, durable, demandedDurable } = options.durability
  const transactions: Transactions = Context.Service(`castellan/sql/GroupCommit/${clients++}`)
  /** Serialises the nested parts of a transaction, which share a savepoint name. */
  const parts = new WeakMap<SqlClient.TransactionConnection.Service, Semaphore.Semaphore>()
  /** Its holder owns the connection. */
  const turn = Semaphore.makeUnsafe(1)
  const waiting: Array<Member> = []
  let isServed = false

  const run = (statement: string) => attempt(() => void connection.all(statement, []))

  /** Retries while another process writes, without blocking the thread. */
  const patiently = <A>(step: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
    Effect.suspend(() => {
      const until = performance.now() + options.busyMillis
      const again: Effect.Effect<A, SqlError> = Effect.catchIf(
        step,
        (error) => isBusy(error) && performance.now() < until,
        () => Effect.andThen(pause, again)
      )
      return again
    })

  const onDisk = (changes: boolean, when: Answered): Effect.Effect<void, SqlError> =>
    when === "committed" ? Effect.void : changes || when === "whole" ? durable : demandedDurable

  const outside = connectionOf((text, parameters) =>
    Effect.withFiber((fiber) => {
      const when = fiber.getRef(answered)
      const changes = !reading.test(text)
      const step = attempt(() => {
        const rows = connection.all(text, parameters)
        if (changes) committed(when !== "committed")
        return rows
      })
      return Effect.tap(turn.withPermit(patiently(step)), () => onDisk(changes, when))
    })
  )

  const within = <R>(context: Context.Context<R>, state: State): Context.Context<R> =>
    Context.add(steadied(context), transactions, [inside(state), 0])

  /** Runs the effect in a savepoint, which alone is rolled back on failure. */
  const inPart = <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    own: SqlClient.TransactionConnection.Service
  ): Effect.Effect<A, E | SqlError, R> => {
    const [connection, depth] = own
    const inTurn = parts.get(own) ?? Semaphore.makeUnsafe(1)
    parts.set(own, inTurn)
    const step = (statement: string) => connection.executeRaw(`${statement} part${depth}`, [])
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        yield* step("savepoint")
        const exit = yield* Effect.exit(
          restore(Effect.provideService(effect, transactions, [connection, depth + 1]))
        )
        if (Exit.isFailure(exit)) yield* step("rollback to savepoint")
        return yield* exit
      })
    ).pipe(inTurn.withPermit)
  }

  const inside = (state: State): Connection =>
    connectionOf((text, parameters) =>
      Effect.suspend(() => {
        if (state.isOver) return Effect.fail(over)
        if (!reading.test(text)) state.changes = true
        try {
          return Effect.succeed(connection.all(text, parameters))
        } catch (error) {
          state.failed = error as SqlError
          return Effect.fail(state.failed)
        }
      })
    )

  /** Runs one member and rolls it back on failure. Some errors, such as a full disk, roll back the whole transaction. */
  const turnOf = ({ state, turn: own }: Member) =>
    Effect.gen(function* () {
      yield* run("savepoint member")
      const exit = yield* own
      state.isOver = true
      const undone = Exit.isFailure(exit) ? run("rollback to savepoint member") : Effect.void
      yield* Effect.mapError(
        Effect.andThen(undone, run("release savepoint member")),
        (lost) => state.failed ?? lost
      )
    })

  /** Likewise for the only member of a transaction: a failure rolls back the transaction. */
  const turnAlone = ({ state, turn: own, when }: Member) =>
    Effect.gen(function* () {
      const exit = yield* own
      state.isOver = true
      yield* Effect.mapError(
        run(Exit.isFailure(exit) ? "rollback" : "commit"),
        (lost) => state.failed ?? lost
      )
      if (Exit.isSuccess(exit) && state.changes) committed(when !== "committed")
    })

  /** Commits the next members. Each of them ends, or waits again, even after a failure. */
  const commitNext = Effect.suspend(() => {
    const members = waiting.splice(0, largest)
    if (members.length === 0) return Effect.void
    let begun = 0
    const turns = Effect.gen(function* () {
      const [only] = members
      if (only !== undefined && members.length === 1) {
        begun = 1
        return yield* turnAlone(only)
      }
      for (const member of members) {
        begun += 1
        yield* turnOf(member)
      }
      yield* run("commit")
      const changed = members.filter(({ state }) => state.changes)
      if (changed.length > 0) committed(changed.some(({ when }) => when !== "committed"))
    })
    // Takes the write lock first: upgrading from a read lock may fail.
    return patiently(run("begin immediate")).pipe(
      // The connection must not stay in a transaction.
      Effect.andThen(Effect.onError(turns, () => Effect.ignore(run("rollback")))),
      turn.withPermit,
      Effect.exit,
      Effect.flatMap((group) =>
        Effect.sync(() => {
          // When the database rolled the transaction back, members that have not run join the next group.
          if (begun > 0) waiting.unshift(...members.splice(begun))
          for (const member of members) member.end(group)
        })
      )
    )
  })

  /** Collects members until the event loop is idle or time is up. A single member waits for no timer. */
  const gather = (most: number) =>
    Effect.gen(function* () {
      const began = performance.now()
      let now = began
      let isIdle = false
      while (!isIdle && waiting.length < largest && now - began < most) {
        const [turnBegan, before] = [now, waiting.length]
        yield* turnOfLoop
        now = performance.now()
        isIdle = waiting.length === before && now - turnBegan < busyTurnMillis
      }
    })

  /** Commits groups until none waits. */
  const serve = Effect.gen(function* () {
    while (waiting.length > 0) {
      if (options.gatherMillis !== null) yield* gather(options.gatherMillis)
      yield* commitNext
    }
    isServed = false
  })

  const enter = (member: Member): void => {
    waiting.push(member)
    if (isServed) return
    isServed = true
    Effect.runForkWith(steady)(serve)
  }

  /** Runs the effect on a separate fiber with this fiber's context, once its turn comes. */
  const entered = <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    fiber: Fiber.Fiber<unknown, unknown>
  ): Effect.Effect<A, E | SqlError, R> =>
    Effect.callback((resume) => {
      const when = fiber.getRef(answered)
      const state: State = { changes: false, failed: null, isOver: false }
      const context = within(fiber.context as Context.Context<R>, state)
      let isWanted = true
      let isEnded = false
      let running: Fiber.Fiber<A, E> | null = null
      let own: Effect.Effect<A, E> = Effect.interrupt
      let left: () => void = () => undefined
      const member: Member = {
        state,
        when,
        turn: Effect.suspend((): Effect.Effect<Exit.Exit<unknown, unknown>> => {
          if (!isWanted) return Effect.succeed(Exit.void)
          running = Effect.runForkWith(context)(effect)
          own = Fiber.join(running)
          return Fiber.await(running)
        }),
        end: (group) => {
          isEnded = true
          resume(
            Effect.uninterruptible(Effect.andThen(group, Effect.andThen(onDisk(state.changes, when), own)))
          )
          left()
        }
      }
      enter(member)
      return Effect.callback<void>((leave) => {
        isWanted = false
        const at = waiting.indexOf(member)
        if (at >= 0) waiting.splice(at, 1)
        // Only an interrupted member that is still running waits for its end.
        if (isEnded || running === null) return leave(Effect.void)
        left = () => leave(Effect.void)
        running.interruptUnsafe()
      })
    })

  const looking =
    (
      bracket: <A, E, R>(effect: Effect.Effect<A, E, R>, end: () => void) => Effect.Effect<A, E | SqlError, R>
    ): GroupCommit["read"] =>
    <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.withFiber((fiber) => {
        if (Context.getOrUndefined(fiber.context, transactions) !== undefined) return effect
        const state: State = { changes: false, failed: null, isOver: false }
        const checked = bracket(effect, () => {
          state.isOver = true
        })
        return checked.pipe(
          turn.withPermit,
          Effect.updateContext((context: Context.Context<R>) => within(context, state)),
          Effect.exit,
          Effect.flatMap((exit) =>
            Exit.hasInterrupts(exit) ? exit : Effect.andThen(onDisk(false, fiber.getRef(answered)), exit)
          )
        )
      })

  return {
    transactions,
    outside,
    withTransaction: (effect) =>
      Effect.withFiber((fiber) => {
        const own = Context.getOrUndefined(fiber.context, transactions)
        return own === undefined ? entered(effect, fiber) : inPart(effect, own)
      }),
    // One snapshot: a tool may write between two statements.
    read: looking((effect, end) =>
      Effect.acquireUseRelease(
        run("begin"),
        () => effect,
        () => {
          end()
          return Effect.tapError(run("commit"), () => Effect.ignore(run("rollback")))
        }
      )
    ),
    query: looking((effect, end) => Effect.ensuring(effect, Effect.sync(end))),
    durable
  }
}
