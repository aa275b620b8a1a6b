import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** Polling interval of the server's time. */
const interval = "10 seconds"
/** Difference to the server's clock that is logged, in ms. */
const reportedMillis = 5_000

const nanosPerMilli = 1_000_000

/**
 * Provides the PostgreSQL server's time as the clock. All processes of a database then agree about due and expired work and
 * deletions, however their machines' clocks are set. Between polls, and while the server is unavailable, it advances by the
 * process's monotonic clock, which cannot be set. Sleeps and time-outs use the previous clock.
 */
export const layer: Layer.Layer<never, SqlError, SqlClient> = Layer.unwrap(
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const own = yield* Clock.Clock
    const passed = () => Number(own.monotonicTimeNanosUnsafe()) / nanosPerMilli
    let ahead = 0
    let reported = 0

    const measure = Effect.gen(function* () {
      const before = passed()
      const [row] = yield* sql<{ readonly micros: number }>`
        select (extract(epoch from clock_timestamp()) * 1000000)::bigint as micros`
      const after = passed()
      if (row === undefined) return
      const server = row.micros / 1_000
      // The server read its clock between `before` and `after`: an estimate in that range cannot be improved.
      if (ahead < server - after || ahead > server - before) ahead = server - (before + after) / 2
      const millis = Math.round(own.currentTimeMillisUnsafe() - ahead - after)
      if (Math.abs(millis) < reportedMillis || Math.abs(millis - reported) < reportedMillis) return
      reported = millis
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
    yield* measure
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.ignore(measure), interval)))
    return Layer.succeed(Clock.Clock, clock)
  }).pipe(Effect.withTracerEnabled(false))
)
