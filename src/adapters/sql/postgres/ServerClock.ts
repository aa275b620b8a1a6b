import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** How often the server is asked for its time. */
const interval = "10 seconds"
/** A clock that is further from the server's is told of in the log, milliseconds. */
const toldMillis = 5_000

const nanosPerMilli = 1_000_000

/**
 * The clock of whatever is built on it is that of the PostgreSQL server. All processes of one database then agree about
 * what is due, has expired or may be deleted, however the clocks of their machines are set. Between two looks it goes on
 * evenly by the process's own measure of time that passes, which nobody sets; while the server is away as well.
 * What lasts or is waited for stays with the clock that was there before.
 */
export const layer: Layer.Layer<never, SqlError, SqlClient> = Layer.unwrap(
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const own = yield* Clock.Clock
    const passed = () => Number(own.monotonicTimeNanosUnsafe()) / nanosPerMilli
    let ahead = 0
    let told = 0

    const look = Effect.gen(function* () {
      const before = passed()
      const [row] = yield* sql<{ readonly micros: number }>`
        select (extract(epoch from clock_timestamp()) * 1000000)::bigint as micros`
      const after = passed()
      if (row === undefined) return
      const server = row.micros / 1_000
      // The server has looked at some moment between the two: what fits is not known any better.
      if (ahead < server - after || ahead > server - before) ahead = server - (before + after) / 2
      const millis = Math.round(own.currentTimeMillisUnsafe() - ahead - after)
      if (Math.abs(millis) < toldMillis || Math.abs(millis - told) < toldMillis) return
      told = millis
      yield* Effect.annotateLogs(Effect.logWarning("clock differs from the database's, whose time applies"), {
        aheadMillis: millis
      })
    })

    const currentTimeMillisUnsafe = () => Math.floor(passed() + ahead)
    const currentTimeNanosUnsafe = () => BigInt(Math.floor((passed() + ahead) * 1_000)) * 1_000n
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe,
      currentTimeMillis: Effect.sync(currentTimeMillisUnsafe),
      currentTimeNanosUnsafe,
      currentTimeNanos: Effect.sync(currentTimeNanosUnsafe),
      monotonicTimeNanosUnsafe: () => own.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: own.monotonicTimeNanos,
      sleep: (duration) => own.sleep(duration)
    }
    yield* look
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.ignore(look), interval)))
    return Layer.succeed(Clock.Clock, clock)
  }).pipe(Effect.withTracerEnabled(false))
)
