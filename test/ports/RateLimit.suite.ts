import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { type Limits, limits, limitsOf, RateLimit } from "../../src/application/ports/RateLimit.js"
import type { Tier } from "../../src/application/ports/Tenants.js"
import { accountId, alice, bob } from "../support/journal/Make.js"
import * as Time from "../support/Time.js"

/** A full UTC hour. */
const noon = Date.UTC(2026, 0, 2, 12)

const take = (account = alice, tier: Tier = "free") =>
  Effect.flatMap(RateLimit, (rateLimit) => rateLimit.take(account, limits[tier]))

const takeMany = (count: number, account = alice, tier: Tier = "free") =>
  Effect.all(Array.from({ length: count }, () => take(account, tier)))

export const suite = (name: string, layer: Layer.Layer<RateLimit>): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, RateLimit>) =>
    it.effect(text, () => Effect.provide(Effect.andThen(Time.setTime(noon), body), layer))

  describe(`the rate limit in ${name}`, () => {
    for (const tier of ["free", "pro", "enterprise"] as const)
      fact(
        `the tier ${tier} has exactly its requests in a minute`,
        Effect.gen(function* () {
          const { minute } = limits[tier]
          const all = yield* takeMany(minute + 3, alice, tier)
          expect(all.map((it) => it.allowed)).toEqual([
            ...Array.from({ length: minute }, () => true),
            false,
            false,
            false
          ])
          expect(all[0]).toEqual({ allowed: true, limit: minute, remaining: minute - 1, resetSeconds: 60 })
          expect(all[minute - 1]).toMatchObject({ allowed: true, remaining: 0 })
          expect(all[minute]).toEqual({ allowed: false, limit: minute, remaining: 0, resetSeconds: 60 })
        })
      )

    fact(
      "a window begins at the full minute, not at the first request",
      Effect.gen(function* () {
        yield* Time.setTime(noon + 59_001)
        const [first] = yield* takeMany(61)
        expect(first).toMatchObject({ resetSeconds: 1 })
        yield* Time.setTime(noon + 59_999)
        expect(yield* take()).toMatchObject({ allowed: false, resetSeconds: 1 })
        yield* Time.setTime(noon + 60_000)
        expect(yield* take()).toEqual({ allowed: true, limit: 60, remaining: 59, resetSeconds: 60 })
      })
    )

    fact(
      "the hour binds when it has no more left than the minute, and opens at the full hour; refused requests are not counted",
      Effect.gen(function* () {
        for (let minute = 0; minute < 16; minute++) {
          yield* Time.setTime(noon + minute * 60_000)
          const all = yield* takeMany(70)
          expect(all.map((it) => [it.allowed, it.limit])).toEqual(all.map((_, n) => [n < 60, 60]))
        }
        yield* Time.setTime(noon + 16 * 60_000)
        const rest = yield* takeMany(41)
        expect(rest[0]).toEqual({ allowed: true, limit: 1_000, remaining: 39, resetSeconds: 44 * 60 })
        expect(rest[39]).toMatchObject({ allowed: true, limit: 1_000, remaining: 0 })
        expect(rest[40]).toMatchObject({ allowed: false, limit: 1_000, resetSeconds: 44 * 60 })
        yield* Time.setTime(noon + 59 * 60_000 + 59_500)
        expect(yield* take()).toMatchObject({ allowed: false, limit: 1_000, resetSeconds: 1 })
        yield* Time.setTime(noon + 3_600_000)
        expect(yield* take()).toEqual({ allowed: true, limit: 60, remaining: 59, resetSeconds: 60 })
      })
    )

    fact(
      "a clock that was ahead and is right again blocks no requests",
      Effect.gen(function* () {
        yield* Time.setTime(noon + 3 * 3_600_000)
        yield* takeMany(60)
        yield* Time.setTime(noon)
        expect((yield* takeMany(61)).filter((it) => it.allowed).length).toBe(60)
      })
    )

    fact(
      "accounts are counted separately, whatever their names",
      Effect.gen(function* () {
        yield* takeMany(60)
        expect(yield* take()).toMatchObject({ allowed: false })
        for (const account of [bob, ...["__proto__", "constructor", "", "alice "].map(accountId)])
          expect(yield* take(account)).toMatchObject({ allowed: true, remaining: 59 })
      })
    )

    fact(
      "a change of the tier takes effect immediately and keeps the count",
      Effect.gen(function* () {
        yield* takeMany(60)
        expect(yield* take(alice, "pro")).toMatchObject({ allowed: true, limit: 300, remaining: 239 })
        expect(yield* take(alice, "free")).toMatchObject({ allowed: false, limit: 60, remaining: 0 })
      })
    )

    fact(
      "limits of an account are counted like those of a tier, and each window has its own",
      Effect.gen(function* () {
        const { take } = yield* RateLimit
        const some = (count: number, of: Limits) =>
          Effect.all(Array.from({ length: count }, () => take(alice, of)))
        const more = limitsOf({ tier: "free", requestsPerMinute: 70 })
        expect(more).toEqual({ minute: 70, hour: 1_000 })
        const all = yield* some(71, more)
        expect(all.filter(({ allowed }) => allowed).length).toBe(70)
        expect(all[70]).toEqual({ allowed: false, limit: 70, remaining: 0, resetSeconds: 60 })
        const less = limitsOf({ tier: "free", requestsPerMinute: 100, requestsPerHour: 80 })
        const [first, ...rest] = yield* some(11, less)
        expect(first).toEqual({ allowed: true, limit: 80, remaining: 9, resetSeconds: 3_600 })
        expect(rest.filter(({ allowed }) => allowed).length).toBe(9)
        expect(rest[9]).toEqual({ allowed: false, limit: 80, remaining: 0, resetSeconds: 3_600 })
      })
    )

    fact(
      "concurrent requests are counted one by one",
      Effect.gen(function* () {
        const all = yield* Effect.all(
          Array.from({ length: 100 }, () => take()),
          { concurrency: "unbounded" }
        )
        expect(all.filter((it) => it.allowed).length).toBe(60)
      })
    )
  })
}
