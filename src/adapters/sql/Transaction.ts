import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TracerEnabled } from "effect/References"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"

/** The transaction that a fiber is in: its connection, and how many parts deep. */
export type Service = Context.Service<
  SqlClient.TransactionConnection,
  SqlClient.TransactionConnection.Service
>

let clients = 0

/** The transactions of one client. */
export const service = (): Service => Context.Service(`castellan/sql/Transaction/${clients++}`)

/** The present transaction of the fiber's; undefined: it is in none. */
export const present = (
  transactions: Service,
  context: Context.Context<never>
): SqlClient.TransactionConnection.Service | undefined => Context.getOrUndefined(context, transactions)

/** Spans of statements carry their text: there are none in a transaction. */
export const untraced = Context.add(TracerEnabled, false)

/** How a part of a transaction begins, and how what it did is undone. Each has a savepoint of this name. */
export interface Part {
  readonly begin: (connection: Connection, savepoint: string) => Effect.Effect<void, SqlError>
  readonly undo: (connection: Connection, savepoint: string) => Effect.Effect<void, SqlError>
}

/** Runs the effect as a part of the transaction, which is undone alone when it fails. */
export const inPart = <A, E, R>(
  transactions: Service,
  [connection, depth]: SqlClient.TransactionConnection.Service,
  { begin, undo }: Part,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const savepoint = `s${depth + 1}`
      const exit = yield* Effect.exit(
        restore(
          Effect.andThen(
            begin(connection, savepoint),
            Effect.provideService(effect, transactions, [connection, depth + 1])
          )
        )
      )
      if (Exit.isFailure(exit)) yield* undo(connection, savepoint)
      return yield* exit
    })
  )
