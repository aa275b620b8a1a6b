import type { Connection as Plain } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type pg from "pg"

/** A row, whose columns the statement names. */
// biome-ignore lint/suspicious/noExplicitAny: who writes the statement says what its rows are, as in `Connection`.
type Row = any

/** What the server answers; to a text of several statements one for each. */
type Answer = pg.QueryResult | ReadonlyArray<pg.QueryResult>

type Parameters = ReadonlyArray<unknown>

/** A connection for one transaction. The server has its statements in the order in which they were sent. */
export interface Connection extends Plain {
  /**
   * Sends the statement, and gives what waits for its rows. Where nobody waits for a statement that is refused, all that
   * follow it fail with its error, `commit` too: the server has given up the transaction.
   */
  readonly ahead: (
    text: string,
    parameters: Parameters
  ) => Effect.Effect<Effect.Effect<ReadonlyArray<Row>, SqlError>>
  readonly commit: Effect.Effect<void, SqlError>
}

export const isOwn = (connection: Plain): connection is Connection => "ahead" in connection

const failed = (cause: unknown) => new SqlError({ cause, message: "the statement failed" })
const noConnection = (cause: unknown) => new SqlError({ cause, message: "there is no connection" })

const rowsOf = (answer: Answer): ReadonlyArray<Row> =>
  "rows" in answer ? answer.rows : answer.map(({ rows }) => rows)

/** The server answers a commit of a failed transaction with success, and calls it a rollback. */
const isCommit = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "command" in answer && answer.command === "COMMIT"

/** How long who was interrupted waits for the server to hear that nobody wants the answer, milliseconds. */
const cancelMillis = 5_000

/** Asks the server to give up what the connection has it do. Where it cannot be asked, it goes on in vain. */
const cancel = (pool: pg.Pool, client: pg.PoolClient): Effect.Effect<void> =>
  Effect.suspend(() => {
    const processId = "processID" in client ? client.processID : undefined
    if (typeof processId !== "number" || pool.ending) return Effect.void
    return Effect.async<void>((resume) =>
      pool.query("select pg_cancel_backend($1)", [processId], () => resume(Effect.void))
    ).pipe(Effect.interruptible, Effect.timeoutOption(cancelMillis))
  })

type Answered = (refused: SqlError | null, answer: Answer) => void

/** `asArrays`: rows are lists of values. */
const ask = (
  client: pg.PoolClient,
  text: string,
  parameters: Parameters,
  asArrays: boolean,
  answered: Answered
): void => {
  const heard = (cause: unknown, answer: Answer) => answered(cause ? failed(cause) : null, answer)
  const values = [...parameters]
  if (asArrays) client.query({ text, values, rowMode: "array" }, heard)
  else client.query(text, values, heard)
}

const connection = (
  run: (text: string, parameters: Parameters, asArrays: boolean) => Effect.Effect<Answer, SqlError>
): Plain => {
  const execute: Plain["execute"] = (text, parameters, transformRows) => {
    const rows = Effect.map(run(text, parameters, false), rowsOf)
    return transformRows === undefined ? rows : Effect.map(rows, transformRows)
  }
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: (text, parameters) => run(text, parameters, false),
    executeValues: (text, parameters) => Effect.map(run(text, parameters, true), rowsOf),
    executeStream: () => Stream.dieMessage("rows of PostgreSQL are not streamed")
  }
}

/** For statements that are in no transaction: each has whatever connection is free. */
export const outside = (pool: pg.Pool): Plain =>
  connection((text, parameters, asArrays) =>
    Effect.async((resume) => {
      let isOver = false
      let client: pg.PoolClient | null = null
      let leave = (): void => {
        isOver = true
      }
      pool.connect((cause, given, release) => {
        if (given === undefined) return resume(Effect.fail(noConnection(cause)))
        if (isOver) return release()
        client = given
        const end = (lost?: Error): void => {
          if (isOver) return
          isOver = true
          given.off("error", onError)
          release(lost)
        }
        const onError = (error: Error): void => {
          end(error)
          resume(Effect.fail(noConnection(error)))
        }
        leave = end
        given.once("error", onError)
        ask(given, text, parameters, asArrays, (refused, answer) => {
          end()
          resume(refused === null ? Effect.succeed(answer) : Effect.fail(refused))
        })
      })
      return Effect.suspend(() => {
        const left = Effect.sync(() => leave())
        return client === null ? left : Effect.ensuring(cancel(pool, client), left)
      })
    })
  )

const taken = (pool: pg.Pool) =>
  Effect.acquireRelease(
    Effect.async<{ readonly client: pg.PoolClient; readonly leave: () => void }, SqlError>((resume) =>
      pool.connect((cause, client, release) => {
        if (client === undefined) return resume(Effect.fail(noConnection(cause)))
        let lost: Error | undefined
        const onError = (error: Error): void => {
          lost = error
        }
        client.on("error", onError)
        const leave = (): void => {
          client.off("error", onError)
          release(lost)
        }
        resume(Effect.succeed({ client, leave }))
      })
    ),
    ({ leave }) => Effect.sync(leave)
  )

/** A connection that nobody else has until the scope is closed. */
export const reserve = (pool: pg.Pool): Effect.Effect<Connection, SqlError, Scope.Scope> =>
  Effect.map(taken(pool), ({ client }) => {
    /** What the server refused first of that which was sent ahead: it refuses what follows on account of it. */
    let refusedAhead: SqlError | null = null
    const outcome = (refused: SqlError | null, answer: Answer): Effect.Effect<Answer, SqlError> =>
      refused === null ? Effect.succeed(answer) : Effect.fail(refusedAhead ?? refused)
    const plain = connection((text, parameters, asArrays) =>
      Effect.async((resume) => {
        ask(client, text, parameters, asArrays, (refused, answer) => resume(outcome(refused, answer)))
        return cancel(pool, client)
      })
    )
    return {
      ...plain,
      ahead: (text, parameters) =>
        Effect.sync(() => {
          let told: Effect.Effect<Answer, SqlError> | null = null
          let waits: ((answer: Effect.Effect<Answer, SqlError>) => void) | null = null
          ask(client, text, parameters, false, (refused, answer) => {
            refusedAhead ??= refused
            told = outcome(refused, answer)
            waits?.(told)
          })
          const answer = Effect.async<Answer, SqlError>((resume) => {
            if (told !== null) return resume(told)
            waits = resume
            return cancel(pool, client)
          })
          return Effect.map(answer, rowsOf)
        }),
      commit: Effect.flatMap(plain.executeRaw("commit", []), (answer) =>
        isCommit(answer)
          ? Effect.void
          : Effect.fail(
              refusedAhead ?? new SqlError({ cause: { code: "25P02" }, message: "it was rolled back" })
            )
      )
    }
  })
