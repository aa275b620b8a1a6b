import { describe, expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as MemoryRateLimit from "../../../src/adapters/memory/RateLimit.js"
import { limits, type RateLimit, RateLimitError } from "../../../src/application/ports/RateLimit.js"
import * as Counting from "../../../src/application/tenants/Counting.js"
import { alice } from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

type Limiter = RateLimit["Service"]

const noon = Date.UTC(2026, 0, 2, 12)

/** Counts its calls; fails while `fails` is set. */
const scripted = (limiter: Limiter) => {
  const state = { asked: 0, fails: false }
  const take: Limiter["take"] = (account, limits) =>
    Effect.suspend(() => {
      state.asked += 1
      return state.fails
        ? Effect.fail(new RateLimitError({ message: "away" }))
        : limiter.take(account, limits)
    })
  return { state, limiter: { take } }
}

const pair = Effect.gen(function* () {
  yield* Time.setTime(noon)
  const first = scripted(yield* MemoryRateLimit.make)
  const second = scripted(yield* MemoryRateLimit.make)
  return { first, second, both: Counting.withFailover(first.limiter, second.limiter) }
})

const take = (limiter: Limiter) => limiter.take(alice, limits.free)

describe("a count with another one to fall back on", () => {
  test("is the first one's as long as that answers", function* () {
    const { both, first, second } = yield* pair
    for (let n = 0; n < 60; n++) expect((yield* take(both)).allowed).toBe(true)
    expect((yield* take(both)).allowed).toBe(false)
    expect([first.state.asked, second.state.asked]).toEqual([61, 0])
  })

  test("is the fallback's while the first limiter is away, which is retried every five seconds", function* () {
    const { both, first, second } = yield* pair
    first.state.fails = true
    for (let n = 0; n < 60; n++) expect((yield* take(both)).allowed).toBe(true)
    expect((yield* take(both)).allowed).toBe(false)
    expect([first.state.asked, second.state.asked]).toEqual([1, 61])
    yield* Time.adjust(5_000)
    yield* take(both)
    yield* take(both)
    expect([first.state.asked, second.state.asked]).toEqual([2, 63])
    first.state.fails = false
    yield* Time.adjust(5_000)
    expect(yield* take(both)).toMatchObject({ allowed: true, remaining: 59 })
    yield* take(both)
    expect([first.state.asked, second.state.asked]).toEqual([4, 63])
  })

  test("fails when both do, and without a second one", function* () {
    const { both, first, second } = yield* pair
    first.state.fails = true
    second.state.fails = true
    expect((yield* Effect.flip(take(both)))._tag).toBe("RateLimitError")
    const alone = Counting.withFailover(first.limiter, null)
    for (let n = 0; n < 3; n++) expect((yield* Effect.flip(take(alone)))._tag).toBe("RateLimitError")
  })

  test("does not wait for a limiter that never replies", function* () {
    const fiber = yield* Effect.forkChild(
      Effect.flip(take(Counting.withPatience({ take: () => Effect.never })))
    )
    yield* Time.adjust(2_000)
    expect((yield* Fiber.join(fiber))._tag).toBe("RateLimitError")
  })
})
