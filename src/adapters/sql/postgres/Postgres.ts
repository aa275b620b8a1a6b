import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as ErrorCode from "../ErrorCode.js"
import * as PostgresClient from "./PostgresClient.js"

/** The server is unusable. Shows only the host of its address. */
export class PostgresError extends Data.TaggedError("PostgresError")<{ readonly message: string }> {}

/** Address of the database. */
export type Address =
  | {
      /** `postgres://user:password@host:port/database?sslmode=verify-full` */
      readonly url: Redacted.Redacted<string>
    }
  | {
      readonly host: string
      /** Default 5432. */
      readonly port?: number
      readonly user: string
      readonly password: Redacted.Redacted<string>
      readonly database: string
    }

/** Options of the connection pool. */
export type Options = Address & {
  /** Most connections of this process, at least 2. Default 10. */
  readonly maxConnections?: number
  /** Time-out of opening a connection, and of waiting for a free one, in ms. Default 5,000. */
  readonly connectTimeoutMillis?: number
  /**
   * Time-out of a statement's reply, at least 2,000 ms. Its connection is then closed, and its work has failed. Null: none.
   * Default 15,000.
   */
  readonly answerTimeoutMillis?: number | null
}

/** The presentable part of the address; null when it is not the URL of a PostgreSQL server. */
const shownHost = (options: Options): string | null => {
  if (!("url" in options)) return options.host
  const text = Redacted.value(options.url)
  if (!/^postgres(?:ql)?:\/\//.test(text) || !URL.canParse(text)) return null
  return new URL(text).hostname || "the local socket"
}

/** A statement without an answer for this time fails, and its connection is cut. Milliseconds. */
export const defaultAnswerTimeoutMillis = 15_000

/**
 * A client of a PostgreSQL database, with a connection pool. Every commit is on the server's disk when it returns; a server
 * with `fsync = off` is refused.
 */
export const make = (
  options: Options
): Effect.Effect<SqlClient.SqlClient, PostgresError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const host = shownHost(options)
    if (host === null)
      return yield* new PostgresError({ message: "the database's URL is not one of PostgreSQL" })
    const failed = (cause: unknown) =>
      cause instanceof PostgresError
        ? cause
        : new PostgresError({
            message: `cannot use the PostgreSQL server at ${host}${ErrorCode.suffix(cause)}`
          })
    return yield* Effect.gen(function* () {
      const { answerTimeoutMillis = defaultAnswerTimeoutMillis, connectTimeoutMillis = 5_000 } = options
      const sql = yield* PostgresClient.make({
        ...("url" in options
          ? { url: options.url }
          : { ...options, username: options.user, port: options.port ?? 5432 }),
        maxConnections: Math.max(2, options.maxConnections ?? 10),
        connectTimeoutMillis,
        answerTimeoutMillis
      })
      const [disk] = yield* sql<{ readonly fsync: string }>`select current_setting('fsync') as fsync`
      if (disk?.fsync !== "on")
        return yield* new PostgresError({
          message: `the PostgreSQL server at ${host} does not write commits to the disk (fsync)`
        })
      return sql
    }).pipe(
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.mapError(failed)
    )
  }).pipe(Effect.withTracerEnabled(false))

/** A pool of connections to PostgreSQL 12 or later, as Effect's `SqlClient`. */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, PostgresError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))
