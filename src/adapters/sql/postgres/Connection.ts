import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Connection as Plain } from "effect/sql/SqlConnection"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import type pg from "pg"
import * as Held from "./Held.js"

/** A row, whose columns the statement names. */
// biome-ignore lint/suspicious/noExplicitAny: who writes the statement says what its rows are, as in `Connection`.
type Row = any

/** A connection for one transaction. The server has its statements in the order in which they were sent. */
export interface Connection extends Plain {
  /**
   * Sends the statement, and gives what waits for its rows. Where nobody waits for a statement that is refused, all that
   * follow it fail with its error, `commit` too: the server has given up the transaction.
   */
  readonly ahead: (
    text: string,
    parameters: Held.Parameters
  ) => Effect.Effect<Effect.Effect<ReadonlyArray<Row>, SqlError>>
  /** Undoes what came after the savepoint; what was refused there counts no more. */
  readonly rollbackTo: (savepoint: string) => Effect.Effect<void, SqlError>
  readonly commit: Effect.Effect<void, SqlError>
}

export const isOwn = (connection: Plain): connection is Connection => "ahead" in connection

const noConnection = (cause: unknown) =>
  new SqlError({ reason: new UnknownError({ cause, message: "there is no connection" }) })

const rowsOf = (answer: Held.Answer): ReadonlyArray<Row> =>
  "rows" in answer ? answer.rows : answer.map(({ rows }) => rows)

/** The server answers a commit of a failed transaction with success, and calls it a rollback. */
const isCommit = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "command" in answer && answer.command === "COMMIT"

const connection = (
  run: (text: string, parameters: Held.Parameters, asArrays: boolean) => Effect.Effect<Held.Answer, SqlError>
): Plain => {
  const execute: Plain["execute"] = (text, parameters, transformRows) => {
    const rows = Effect.map(run(text, parameters, false), rowsOf)
    return transformRows === undefined ? rows : Effect.map(rows, transformRows)
  }
  const executeValues: Plain["executeValues"] = (text, parameters) =>
    Effect.map(run(text, parameters, true), rowsOf)
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: (text, parameters) => run(text, parameters, false),
    executeValues,
    executeValuesUnprepared: executeValues,
    executeStream: () => Stream.die(new Error("rows of PostgreSQL are not streamed"))
  }
}

/** For statements that are in no transaction: each has whatever connection is free. */
export const outside = (pool: pg.Pool): Plain =>
  connection((text, parameters, asArrays) =>
    Effect.callback((resume) => {
      let isUnwanted = false
      let held: Held.Held | null = null
      pool.connect((cause, client, release) => {
        if (client === undefined) return resume(Effect.fail(noConnection(cause)))
        if (isUnwanted) return release()
        held = Held.hold(pool, client, release)
        held.ask(text, parameters, asArrays, (refused, answer) =>
          resume(refused === null ? Effect.succeed(answer) : Effect.fail(refused))
        )
        held.leave()
      })
      return Effect.suspend(() => {
        isUnwanted = true
        return held?.cancel ?? Effect.void
      })
    })
  )

const taken = (pool: pg.Pool) =>
  Effect.acquireRelease(
    Effect.callback<Held.Held, SqlError>((resume) =>
      pool.connect((cause, client, release) =>
        resume(
          client === undefined
            ? Effect.fail(noConnection(cause))
            : Effect.succeed(Held.hold(pool, client, release))
        )
      )
    ),
    ({ leave }) => Effect.sync(leave)
  )

/** A connection that nobody else has until the scope is closed. */
export const reserve = (pool: pg.Pool): Effect.Effect<Connection, SqlError, Scope.Scope> =>
  Effect.map(taken(pool), ({ ask, cancel }) => {
    /** What the server refused first of that which was sent ahead: it refuses what follows on account of it. */
    let refusedAhead: SqlError | null = null
    const outcome = (refused: SqlError | null, answer: Held.Answer): Effect.Effect<Held.Answer, SqlError> =>
      refused === null ? Effect.succeed(answer) : Effect.fail(refusedAhead ?? refused)
    const plain = connection((text, parameters, asArrays) =>
      Effect.callback((resume) => {
        ask(text, parameters, asArrays, (refused, answer) => resume(outcome(refused, answer)))
        return cancel
      })
    )
    return {
      ...plain,
      ahead: (text, parameters) =>
        Effect.sync(() => {
          let told: Effect.Effect<Held.Answer, SqlError> | null = null
          let waits: ((answer: Effect.Effect<Held.Answer, SqlError>) => void) | null = null
          ask(text, parameters, false, (refused, answer) => {
            refusedAhead ??= refused
            told = outcome(refused, answer)
            waits?.(told)
          })
          const answer = Effect.callback<Held.Answer, SqlError>((resume) => {
            if (told !== null) return resume(told)
            waits = resume
            return cancel
          })
          return Effect.map(answer, rowsOf)
        }),
      rollbackTo: (savepoint) =>
        Effect.map(plain.executeRaw(`rollback to savepoint ${savepoint}`, []), () => {
          refusedAhead = null
        }),
      commit: Effect.flatMap(plain.executeRaw("commit", []), (answer) =>
        isCommit(answer)
          ? Effect.void
          : Effect.fail(
              refusedAhead ??
                new SqlError({
                  reason: new UnknownError({ cause: { code: "25P02" }, message: "it was rolled back" })
                })
            )
      )
    }
  })
