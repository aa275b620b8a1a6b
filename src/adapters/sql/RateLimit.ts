import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import {
  allowance,
  beginsAt,
  RateLimit,
  RateLimitError,
  windowMillis
} from "../../application/ports/RateLimit.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"

interface Row {
  readonly minute: number
  readonly in_minute: number
  readonly hour: number
  readonly in_hour: number
}

const failed = (error: SqlError): RateLimitError =>
  new RateLimitError({ message: `the counts of requests failed${ErrorCode.suffix(error)}` })

/**
 * Counts in one statement for all processes of a PostgreSQL database; on SQLite, each count costs a disk write. A process
 * whose clock is behind counts in the newest window of the others. A window that is more than one window ahead was begun by
 * a wrong clock, and is replaced.
 */
export const make: Migrations.Stored<RateLimit["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const isOther = (window: keyof typeof windowMillis) =>
    sql.literal(
      `(excluded.${window} > rate_counts.${window}
        or rate_counts.${window} > excluded.${window} + ${windowMillis[window]})`
    )
  const [otherMinute, otherHour] = [isOther("minute"), isOther("hour")]
  return {
    take: (account, limits) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const [minute, hour] = [beginsAt("minute", now), beginsAt("hour", now)]
        const row = { account_id: account, minute, in_minute: 1, hour, in_hour: 1 }
        const [counted] = yield* sql<Row>`
          insert into rate_counts ${sql.insert(row)}
          on conflict (account_id) do update set
            minute = case when ${otherMinute} then excluded.minute else rate_counts.minute end,
            in_minute = case when ${otherMinute} then 1 else rate_counts.in_minute + 1 end,
            hour = case when ${otherHour} then excluded.hour else rate_counts.hour end,
            in_hour = case when ${otherHour} then 1 else rate_counts.in_hour + 1 end
          where (${otherMinute} or rate_counts.in_minute < ${limits.minute})
            and (${otherHour} or rate_counts.in_hour < ${limits.hour})
          returning minute, in_minute, hour, in_hour`
        if (counted !== undefined)
          return allowance(limits, { minute: counted.in_minute - 1, hour: counted.in_hour - 1 }, now)
        const [full] = yield* sql<Row>`
          select minute, in_minute, hour, in_hour from rate_counts where account_id = ${account}`
        const refused = allowance(
          limits,
          {
            minute: full === undefined || full.minute < minute ? 0 : full.in_minute,
            hour: full === undefined || full.hour < hour ? 0 : full.in_hour
          },
          now
        )
        // Another process may have started a new window in between.
        return { ...refused, allowed: false, remaining: 0 }
      }).pipe(Effect.mapError(failed), Effect.withTracerEnabled(false))
  }
})

/** Counts the requests of all replicas in the database, as the port `RateLimit`. */
export const layer: Migrations.StoredLayer<RateLimit> = Layer.effect(RateLimit, make)
