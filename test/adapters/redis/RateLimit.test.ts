import { execFileSync } from "node:child_process"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as RedisRateLimit from "../../../src/adapters/redis/RateLimit.js"
import { limits, type RateLimit } from "../../../src/application/ports/RateLimit.js"
import { alice } from "../../support/journal/Make.js"
import * as RedisServer from "../../support/redis/Redis.js"

const redis = await RedisServer.start()
afterAll(() => redis.stop())

const take = (limiter: RateLimit["Service"]) => limiter.take(alice, limits.free)

describe("Redis", () => {
  const url = Redacted.make(redis.url)

  it.live("the rate limiter notices when Redis ends, hangs or is back", () =>
    Effect.gen(function* () {
      const limiter = yield* RedisRateLimit.make({ url, commandTimeoutMillis: 1_000 })
      expect((yield* take(limiter)).allowed).toBe(true)
      redis.hold(true)
      expect((yield* Effect.flip(take(limiter)))._tag).toBe("RateLimitError")
      redis.hold(false)
      yield* Effect.promise(redis.end)
      expect((yield* Effect.flip(take(limiter))).message).toBe("Redis does not count")
      yield* Effect.promise(redis.begin)
      const back = yield* Effect.retry(take(limiter), { times: 100, schedule: Schedule.spaced("100 millis") })
      expect(back.allowed).toBe(true)
    }).pipe(Effect.scoped)
  )

  it.live("the rate limiter starts without Redis, and counts once Redis is up", () =>
    Effect.gen(function* () {
      yield* Effect.promise(redis.end)
      const limiter = yield* RedisRateLimit.make({ url, commandTimeoutMillis: 1_000 })
      expect((yield* Effect.flip(take(limiter)))._tag).toBe("RateLimitError")
      yield* Effect.promise(redis.begin)
      yield* Effect.retry(take(limiter), { times: 100, schedule: Schedule.spaced("100 millis") })
    }).pipe(Effect.scoped)
  )

  it.live("a Redis reply that arrives during a computation is not late", () =>
    Effect.gen(function* () {
      const limiter = yield* RedisRateLimit.make({ url, commandTimeoutMillis: 1 })
      const { hostname, password, port } = new URL(redis.url)
      const address = ["-h", hostname, "-p", port, "-a", password, "--no-auth-warning"]
      // Redis replies in order: once PING has its reply, so has the count.
      const compute = Effect.sync(() => execFileSync("redis-cli", [...address, "ping"]))
      const [counted] = yield* Effect.all([Effect.result(take(limiter)), compute], {
        concurrency: "unbounded"
      })
      expect(counted).toMatchObject({ _tag: "Success", success: { allowed: true } })
    }).pipe(Effect.scoped)
  )

  it.effect("a malformed Redis URL is refused without its value", () =>
    Effect.gen(function* () {
      for (const wrong of ["", "127.0.0.1", "http://secret@h", "redis//secret"]) {
        const error = yield* Effect.flip(RedisRateLimit.make({ url: Redacted.make(wrong) }))
        expect(error.message).toBe("rateLimit.redis is not the URL of a Redis server")
      }
    }).pipe(Effect.scoped)
  )
})
