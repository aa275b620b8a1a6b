import * as Effect from "effect/Effect"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import type pg from "pg"

/** What the server answers; to a text of several statements one for each. */
export type Answer = pg.QueryResult | ReadonlyArray<pg.QueryResult>

export type Parameters = ReadonlyArray<unknown>

type Answered = (refused: SqlError | null, answer: Answer) => void

/** A connection of the pool, while somebody has it. */
export interface Held {
  /** `asArrays`: rows are lists of values. */
  readonly ask: (text: string, parameters: Parameters, asArrays: boolean, answered: Answered) => void
  /** Asks the server to give up what the connection has it do. Where it cannot be asked, it goes on in vain. */
  readonly cancel: Effect.Effect<void>
  /**
   * Gives it back to the pool, as soon as it owes no answer and no cancel is on its way that could meet a statement of
   * whoever has it next. One that may be broken is ended.
   */
  readonly leave: () => void
}

const failed = (cause: unknown) =>
  new SqlError({ reason: new UnknownError({ cause, message: "the statement failed" }) })

/** Of a fiber that lives longer than the transaction that it was started in: others may have its connection. */
const over = failed(new Error("the transaction of the statement is over"))

/** How long who was interrupted waits for the server to hear that nobody wants the answer, milliseconds. */
const cancelMillis = 5_000

/**
 * Asks the server over another connection to give up what this one has it do. `sent` is told when that leaves, and tells
 * back what comes of it. It does not leave any more once `onQuiet` says that there is nothing to give up.
 */
const cancelling = (
  pool: pg.Pool,
  processId: number,
  onQuiet: Set<() => void>,
  sent: () => (doubt?: Error) => void
): Effect.Effect<void> =>
  Effect.suspend(() => {
    let isOver = false
    let arrived: ReturnType<typeof sent> | null = null
    let end = (): void => undefined
    const quiet = (): void => {
      if (arrived !== null) return
      isOver = true
      end()
    }
    onQuiet.add(quiet)
    return Effect.callback<void>((resume) => {
      end = () => resume(Effect.void)
      pool.connect((_, other, free) => {
        if (other === undefined) return end()
        if (isOver) return free()
        const told = sent()
        arrived = told
        const messenger = hold(pool, other, free)
        messenger.ask("select pg_cancel_backend($1)", [processId], false, (refused) => {
          told(refused ?? undefined)
          end()
        })
        messenger.leave()
      })
    }).pipe(
      Effect.interruptible,
      Effect.timeoutOption(cancelMillis),
      Effect.andThen(
        Effect.sync(() => {
          isOver = true
          onQuiet.delete(quiet)
          arrived?.(new Error("a cancel may be on its way to it"))
        })
      )
    )
  })

export const hold = (pool: pg.Pool, client: pg.PoolClient, release: (lost?: Error) => void): Held => {
  let lost: Error | undefined
  /** Statements without an answer, and cancels that were sent and may not have come to it. */
  let [owed, cancels] = [0, 0]
  /** The last answer was an error, after which the server may have ended the connection. */
  let isDoubted = false
  let [isLeft, isBack] = [false, false]
  const onQuiet = new Set<() => void>()
  const onError = (error: Error): void => {
    lost = error
  }
  client.on("error", onError)

  const look = (): void => {
    if (owed > 0) return
    for (const tell of onQuiet) tell()
    if (!isLeft || isBack || cancels > 0) return
    if (isDoubted && lost === undefined) {
      ask("", [], false, (refused) => {
        lost ??= refused ?? undefined
      })
      return
    }
    isBack = true
    client.off("error", onError)
    release(lost)
  }
  const ask: Held["ask"] = (text, parameters, asArrays, answered) => {
    let isAnswered = false
    owed += 1
    const heard = (cause: unknown, answer: Answer): void => {
      if (isAnswered) return
      isAnswered = true
      owed -= 1
      isDoubted = Boolean(cause)
      answered(isDoubted ? failed(cause) : null, answer)
      look()
    }
    const values = [...parameters]
    if (asArrays) client.query({ text, values, rowMode: "array" }, heard)
    else client.query(text, values, heard)
  }
  const sent = () => {
    cancels += 1
    let isSettled = false
    return (doubt?: Error): void => {
      if (isSettled) return
      isSettled = true
      cancels -= 1
      lost ??= doubt
      look()
    }
  }
  return {
    ask: (text, parameters, asArrays, answered) =>
      isLeft ? answered(over, []) : ask(text, parameters, asArrays, answered),
    cancel: Effect.suspend(() => {
      const processId = "processID" in client ? client.processID : undefined
      return typeof processId !== "number" || pool.ending || owed === 0
        ? Effect.void
        : cancelling(pool, processId, onQuiet, sent)
    }),
    leave: () => {
      isLeft = true
      look()
    }
  }
}
