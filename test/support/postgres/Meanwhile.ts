import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as SqlClient from "effect/sql/SqlClient"

/** Resolves once a connection waits for a lock of this database. */
export const somebodyWaits = (sql: SqlClient.SqlClient): Effect.Effect<void> =>
  sql`
    select 1 from pg_locks where not granted and exists (
      select 1 from pg_stat_activity where pg_stat_activity.pid = pg_locks.pid and datname = current_database())`.pipe(
    Effect.orDie,
    Effect.flatMap((rows) => (rows.length > 0 ? Effect.void : somebodyWaits(sql)))
  )

/** Outcome of a method that has read its data and waits for a lock of a transaction that then changes the data. */
export const changed = <A, E, E2>(
  sql: SqlClient.SqlClient,
  other: SqlClient.SqlClient,
  of: {
    readonly lock: Effect.Effect<unknown, E2>
    readonly method: Effect.Effect<A, E>
    readonly change: Effect.Effect<unknown, E2>
  }
) =>
  Effect.gen(function* () {
    const locked = yield* Deferred.make<void>()
    const changing = yield* Effect.forkChild(
      sql.withTransaction(
        Effect.gen(function* () {
          yield* of.lock
          yield* Deferred.succeed(locked, undefined)
          yield* somebodyWaits(other)
          yield* of.change
        })
      )
    )
    yield* Deferred.await(locked)
    return yield* Effect.tap(of.method, Fiber.join(changing))
  })
