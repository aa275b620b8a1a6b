import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import pg from "pg"
import type { Replicas, Signal } from "../../application/ports/Replicas.js"
import * as Address from "../../domain/primitives/Address.js"

/** Notifications go to all connections of one database that listen to this name. */
const channel = "castellan"
/** PostgreSQL takes payloads below 8,000 bytes; an id of a request is at most some hundred. */
const perNotification = 16
/** Told and not yet sent: beyond that the oldest are lost. */
const backlog = 4_096
/** How long the server may take for anything, milliseconds. */
const patienceMillis = 5_000
/** Something is sent at least this often: a connection that is dead and does not say so is noticed then. */
const beat = "10 seconds"

class Disconnected extends Data.TaggedError("Disconnected")<{ readonly cause: unknown }> {}

const Payload = Schema.fromJsonString(
  Schema.Array(
    Schema.Union([
      Schema.TaggedStruct("accepted", {
        lane: Schema.Struct({ chainId: Schema.BigIntFromString, signer: Address.schema })
      }),
      Schema.TaggedStruct("final", { requestId: Schema.String })
    ])
  )
)
const encode = Schema.encodeEffect(Payload)
const decode = Schema.decodeOption(Payload)

/** Listens while the scope is open; `ended` fails when the connection does. */
const connect = (url: Redacted.Redacted<string>, hear: (payload: string) => void) =>
  Effect.gen(function* () {
    const client = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new pg.Client({
            connectionString: Redacted.value(url),
            application_name: "castellan",
            connectionTimeoutMillis: patienceMillis,
            query_timeout: patienceMillis,
            keepAlive: true,
            keepAliveInitialDelayMillis: 10_000
          })
      ),
      // Its end is not waited for: a server that hangs never answers.
      (made) => Effect.sync(() => void made.end().catch(() => undefined))
    )
    const ended = yield* Deferred.make<never, Disconnected>()
    const end = (cause: unknown) => Deferred.doneUnsafe(ended, Effect.fail(new Disconnected({ cause })))
    client.on("error", end)
    client.on("end", () => end("the connection has ended"))
    client.on("notification", ({ payload }) => hear(payload ?? ""))
    yield* Effect.tryPromise({
      try: async () => {
        await client.connect()
        await client.query(`listen ${channel}`)
      },
      catch: (cause) => new Disconnected({ cause })
    })
    return { client, ended }
  })

/**
 * Signals between the processes of one PostgreSQL database, by LISTEN and NOTIFY on a connection of their own. While the
 * database is away signals are lost; the connection comes back by itself.
 */
export const make = (
  url: Redacted.Redacted<string>
): Effect.Effect<Pick<Replicas["Service"], "tell" | "heard">, never, Scope.Scope> =>
  Effect.gen(function* () {
    const outgoing = yield* Queue.sliding<Signal>(backlog)
    const incoming = yield* Queue.sliding<Signal>(backlog)
    const hear = (payload: string) => {
      for (const signal of Option.getOrElse(decode(payload), () => [])) Queue.offerUnsafe(incoming, signal)
    }
    const converse = Effect.gen(function* () {
      const { client, ended } = yield* connect(url, hear)
      const speak = Effect.gen(function* () {
        const signals = yield* Effect.timeoutOrElse(Queue.takeBetween(outgoing, 1, perNotification), {
          duration: beat,
          orElse: () => Effect.succeed([])
        })
        const payload = yield* Effect.orDie(encode(signals))
        yield* Effect.tryPromise({
          try: () => client.query("select pg_notify($1, $2)", [channel, payload]),
          catch: (cause) => new Disconnected({ cause })
        })
      })
      return yield* Effect.raceFirst(Effect.forever(speak), Deferred.await(ended))
    })
    yield* Effect.scoped(converse).pipe(
      Effect.tapError(() => Effect.logDebug("processes cannot signal each other: the database is away")),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.forkScoped
    )
    return {
      tell: (signal) => Effect.asVoid(Queue.offer(outgoing, signal)),
      heard: Stream.fromQueue(incoming)
    }
  })
