import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { SqlError } from "effect/sql/SqlError"
import type { Replicas, Signal } from "../../application/ports/Replicas.js"
import * as Address from "../../domain/primitives/Address.js"

/** Notifications reach all connections of the database that listen to this channel. */
const channel = "castellan"
/** PostgreSQL limits payloads to less than 8,000 bytes; a request id has at most some hundred. */
const perNotification = 16
/** Most unsent signals; beyond that the oldest are lost. */
const backlog = 4_096
/** Time-out of the server. */
const patience = "5 seconds"
/** Longest interval between sends, so that a dead connection is noticed. */
const beat = "10 seconds"

const Payload = Schema.fromJsonString(
  Schema.Array(
    Schema.Union([
      Schema.TaggedStruct("accepted", {
        lane: Schema.Struct({ chainId: Schema.BigIntFromString, signer: Address.schema }),
        hasUnopened: Schema.optional(Schema.Boolean)
      }),
      Schema.TaggedStruct("final", { requestId: Schema.String })
    ])
  )
)
const encode = Schema.encodeEffect(Payload)
const decode = Schema.decodeOption(Payload)

/**
 * Signals between the processes of one PostgreSQL database, by LISTEN and NOTIFY on a dedicated connection. Signals are
 * lost while the database is unavailable; the connection recovers by itself.
 */
export const make = (
  connect: Effect.Effect<PgConnection.PgConnection, SqlError, Scope.Scope>
): Effect.Effect<Pick<Replicas["Service"], "tell" | "signals">, never, Scope.Scope> =>
  Effect.gen(function* () {
    const outgoing = yield* Queue.sliding<Signal>(backlog)
    const incoming = yield* Queue.sliding<Signal>(backlog)
    const converse = Effect.gen(function* () {
      // The listener owns the connection and sends on it, too.
      const connection = yield* Effect.flatMap(connect, ({ pin }) => pin)
      const notifications = yield* connection.listen(channel)
      const hear = Effect.map(Queue.take(notifications), ({ payload }) => {
        for (const signal of Option.getOrElse(decode(payload), () => [])) Queue.offerUnsafe(incoming, signal)
      })
      const speak = Effect.gen(function* () {
        const signals = yield* Effect.timeoutOrElse(Queue.takeBetween(outgoing, 1, perNotification), {
          duration: beat,
          orElse: () => Effect.succeed([])
        })
        const payload = yield* Effect.orDie(encode(signals))
        yield* Effect.timeout(connection.query("select pg_notify($1, $2)", [channel, payload]), patience)
      })
      return yield* Effect.raceFirst(Effect.forever(speak), Effect.forever(hear))
    })
    yield* Effect.scoped(converse).pipe(
      Effect.tapError(() => Effect.logDebug("processes cannot signal each other: the database is away")),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.forkScoped
    )
    return {
      tell: (signal) => Effect.asVoid(Queue.offer(outgoing, signal)),
      signals: Stream.fromQueue(incoming)
    }
  })
