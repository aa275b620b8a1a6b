import { Socket } from "node:net"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import pg from "pg"

/** After so long without a word the other end is asked whether it is still there, milliseconds. */
export const keepAliveMillis = 10_000

/** What the client says of a statement that was not answered in time; it has no code. */
const unanswered = "Query read timeout"

/** The callback that a call of `query` may bring as its last argument. */
type Callback = (error: Error | null, result: unknown) => void

/**
 * A connection that is ended when a statement on it is not answered in time. It would go back to the pool otherwise, and
 * whoever is given it next would wait behind that statement: TCP takes a quarter of an hour to notice that the network
 * is gone.
 */
class EndingClient extends pg.Client {
  override query = ((...args: Array<unknown>) => {
    const callback = args.at(-1)
    const query: (...args: Array<unknown>) => unknown = super.query
    if (typeof callback !== "function") return query.apply(this, args)
    const judged: Callback = (error, result) => {
      // The client cuts the connection by itself: from now on nobody is given it.
      if (error?.message === unanswered) void this.end().catch(() => undefined)
      ;(callback as Callback)(error, result)
    }
    return query.call(this, ...args.slice(0, -1), judged)
  }) as pg.Client["query"]
}

/** What is written within one turn leaves together: each write to the network is a call of the kernel. */
class GatheringSocket extends Socket {
  private gathers = false

  override write = ((...args: Parameters<Socket["write"]>) => {
    if (!this.gathers) {
      this.gathers = true
      this.cork()
      process.nextTick(() => {
        this.gathers = false
        this.uncork()
      })
    }
    return super.write(...args)
  }) as Socket["write"]
}

export interface Options
  extends Pick<pg.PoolConfig, "host" | "port" | "user" | "database" | "types" | "max"> {
  readonly url?: Redacted.Redacted<string>
  readonly password?: Redacted.Redacted<string>
  readonly connectTimeoutMillis: number
  /** How long a statement may take; null: as long as it likes. */
  readonly answerTimeoutMillis: number | null
}

/**
 * What a server, a database or a role is set to counts no more outside of transactions than in them: rows of the cluster and
 * counts of requests are written by statements of their own. The cluster's rows have times without a zone, which would leap
 * by an hour, twice a year, where the server's zone has a summer time.
 */
const session =
  "set session characteristics as transaction isolation level read committed, read write; set timezone = 'UTC'"

const failed = (cause: unknown) =>
  new SqlError({ reason: new UnknownError({ cause, message: "the server cannot be connected to" }) })

/** A pool whose server has answered once. */
export const make = ({
  answerTimeoutMillis,
  connectTimeoutMillis,
  password,
  url,
  ...where
}: Options): Effect.Effect<pg.Pool, SqlError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const pool = new pg.Pool({
        ...where,
        ...(url !== undefined && { connectionString: Redacted.value(url) }),
        ...(password !== undefined && { password: Redacted.value(password) }),
        ...(answerTimeoutMillis !== null && { query_timeout: answerTimeoutMillis }),
        connectionTimeoutMillis: connectTimeoutMillis,
        // Statements are sent without waiting for the answers to those before.
        pipeline: true,
        stream: () => new GatheringSocket(),
        keepAlive: true,
        keepAliveInitialDelayMillis: keepAliveMillis,
        application_name: "castellan",
        // The pool waits for it before anybody is given the connection.
        onConnect: (client: pg.ClientBase) => client.query(session),
        Client: EndingClient
      } as pg.PoolConfig)
      // A connection that is idle and breaks has nobody to tell.
      pool.on("error", () => undefined)
      return pool
    }),
    (pool) => Effect.promise(() => pool.end()).pipe(Effect.interruptible, Effect.timeoutOption("1 second"))
  ).pipe(
    Effect.tap((pool) =>
      Effect.tryPromise({ try: () => pool.query("select 1"), catch: failed }).pipe(
        Effect.timeoutOrElse({
          duration: connectTimeoutMillis,
          orElse: () => Effect.fail(failed(new Error("it does not answer")))
        })
      )
    )
  )
