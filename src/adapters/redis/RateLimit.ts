import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Redis } from "ioredis"
import {
  allowance,
  beginsAt,
  RateLimit,
  RateLimitError,
  windowMillis
} from "../../application/ports/RateLimit.js"

/** Address of Redis, and the time-out of a count. */
export interface Options {
  /** `redis://user:password@host:port/database`, or `rediss:` for TLS. */
  readonly url: Redacted.Redacted<string>
  /** Time-out of a count, in ms. Default 1,000. The fallback counter starts at zero. */
  readonly commandTimeoutMillis?: number
}

/**
 * Counts a request in both windows or in neither, and returns the previous counts. Only the expiry of counts depends on the
 * server's clock: at the latest one window length after the window's end.
 */
const script = `
local minute = tonumber(redis.call('GET', KEYS[1]) or '0')
local hour = tonumber(redis.call('GET', KEYS[2]) or '0')
if minute < tonumber(ARGV[1]) and hour < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], minute + 1, 'PX', ARGV[3])
  redis.call('SET', KEYS[2], hour + 1, 'PX', ARGV[4])
end
return {minute, hour}`

const failed = new RateLimitError({ message: "Redis does not count" })

const connectMillis = 2_000

/**
 * Rejects when the promise takes too long. A process that was blocked as long has not yet read the reply: it does so in the
 * turn of the event loop between the timer and the check.
 */
const inTime = <A>(promise: Promise<A>, millis: number): Promise<A> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(reject, failed), millis)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })

/** Redis's reply: two counts. */
const isCounts = (answer: unknown): answer is readonly [number, number] =>
  Array.isArray(answer) && answer.length === 2 && answer.every((count) => Number.isSafeInteger(count))

/**
 * Counts for all processes with the same Redis. Without a connection counts fail immediately; it reconnects until the scope
 * closes.
 */
export const make = (options: Options): Effect.Effect<RateLimit["Service"], RateLimitError, Scope.Scope> =>
  Effect.gen(function* () {
    const url = Redacted.value(options.url)
    if (!/^rediss?:\/\//.test(url) || !URL.canParse(url))
      return yield* new RateLimitError({ message: "rateLimit.redis is not the URL of a Redis server" })
    const patience = options.commandTimeoutMillis ?? 1_000
    const redis = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new Redis(url, {
            lazyConnect: true,
            enableOfflineQueue: false,
            autoResendUnfulfilledCommands: false,
            maxRetriesPerRequest: 0,
            connectTimeout: connectMillis,
            // Commands on connection may hang as well.
            commandTimeout: connectMillis + patience,
            retryStrategy: (times) => Math.min(100 * times, 2_000)
          })
      ),
      (client) => Effect.sync(() => client.disconnect())
    )
    // Counts fail by themselves; an unhandled error event would end the process.
    redis.on("error", () => {})
    yield* Effect.promise(() => redis.connect().catch(() => {})).pipe(Effect.timeoutOption(connectMillis))
    return {
      take: (account, limits) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          // Braces place both counts on one cluster node.
          const key = (window: keyof typeof windowMillis) =>
            `castellan:rate:{${JSON.stringify(account)}}:${window}:${beginsAt(window, now)}`
          const answer = yield* Effect.tryPromise({
            try: (): Promise<unknown> =>
              inTime(
                redis.eval(
                  script,
                  2,
                  key("minute"),
                  key("hour"),
                  limits.minute,
                  limits.hour,
                  2 * windowMillis.minute,
                  2 * windowMillis.hour
                ),
                patience
              ),
            catch: () => failed
          })
          if (!isCounts(answer)) return yield* failed
          return allowance(limits, { minute: answer[0], hour: answer[1] }, now)
        })
    }
  })

/** Counts the requests of all replicas in Redis, as the port `RateLimit`. */
export const layer = (options: Options): Layer.Layer<RateLimit, RateLimitError> =>
  Layer.effect(RateLimit, make(options))
