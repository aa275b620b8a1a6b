import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Connection as Plain } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import pg from "pg"
import * as Transaction from "../Transaction.js"
import * as Connection from "./Connection.js"

/** What a transaction sees, and whether it may write. */
export type Mode = "writing" | "reading"

const modes: Readonly<Record<Mode, string>> = {
  // Statements see what others committed before them: a lock that was waited for is worth nothing otherwise.
  writing: "read committed read write",
  // They see the database as it was when the transaction began.
  reading: "repeatable read read only"
}

/**
 * What a server, a database or a role may be set to does not count, and a commit is on the disk. Nobody waits for ever for
 * a lock, nor keeps one when its process is stuck or cut off: what it held is free before its lanes are another's
 * (`adapters/cluster/Replicas.ts`). The server gives a statement up before the client does: what is cut is only what the
 * network has lost.
 */
const begin = (mode: Mode, answerTimeoutMillis: number | null): string =>
  `begin isolation level ${modes[mode]}; select set_config('lock_timeout', '10s', true), ` +
  `set_config('statement_timeout', '${answerTimeoutMillis === null ? 0 : answerTimeoutMillis - 1_000}', true), ` +
  `set_config('idle_in_transaction_session_timeout', '5s', true), set_config('synchronous_commit', ` +
  `case when current_setting('synchronous_commit') = 'remote_apply' then 'remote_apply' else 'on' end, true)`

/** Waits until nobody else has a lock of this name, and keeps it until the transaction ends. */
const lock = (name: string): string =>
  `select pg_advisory_xact_lock(hashtextextended(${pg.escapeLiteral(name)}, 0))`

const told = (connection: Plain, text: string): Effect.Effect<void, SqlError> =>
  Effect.asVoid(connection.executeRaw(text, []))

/** A connection that may still be inside of a transaction must not be used for another one: it is ended. */
const rollback = (connection: Plain): Effect.Effect<void> =>
  told(connection, "rollback").pipe(
    Effect.catch(() => told(connection, "select pg_terminate_backend(pg_backend_pid())")),
    Effect.ignore
  )

const rollbackTo = (connection: Plain, savepoint: string): Effect.Effect<void, SqlError> =>
  Connection.isOwn(connection)
    ? connection.rollbackTo(savepoint)
    : told(connection, `rollback to savepoint ${savepoint}`)

/**
 * A transaction of a connection of its own, or a part of one that can be undone alone. It begins by locking the names, in
 * one question with the beginning.
 */
export const make =
  (
    transactions: Transaction.Service,
    reserve: Effect.Effect<Connection.Connection, SqlError, Scope.Scope>,
    answerTimeoutMillis: number | null
  ) =>
  (mode: Mode, names: ReadonlyArray<string> = []): SqlClient.SqlClient["withTransaction"] => {
    const after = (statement: string): string => [statement, ...names.map(lock)].join("; ")
    const began = after(begin(mode, answerTimeoutMillis))
    const part: Transaction.Part = {
      begin: (connection, savepoint) => told(connection, after(`savepoint ${savepoint}`)),
      undo: rollbackTo
    }
    const whole = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.scopedWith((scope) =>
          Effect.gen(function* () {
            const connection = yield* Scope.provide(reserve, scope)
            const own = Effect.updateContext(effect, (context: Context.Context<R>) =>
              Context.add(Transaction.untraced(context), transactions, [connection, 0])
            )
            // Whoever may be interrupted may be so while he waits for a lock.
            const exit = yield* Effect.exit(restore(Effect.andThen(told(connection, began), own)))
            if (Exit.isFailure(exit)) yield* rollback(connection)
            else yield* Effect.tapError(connection.commit, () => rollback(connection))
            return yield* exit
          })
        )
      )
    return (effect) =>
      Effect.withFiber((fiber) => {
        const own = Transaction.present(transactions, fiber.context)
        return own === undefined ? whole(effect) : Transaction.inPart(transactions, own, part, effect)
      })
  }
