import { describe, expect } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as MemoryRateLimit from "../../../src/adapters/memory/RateLimit.js"
import * as ChainFacts from "../../../src/application/chain/ChainFacts.js"
import * as OpenRequests from "../../../src/application/intake/OpenRequests.js"
import * as Claims from "../../../src/application/lanes/Claims.js"
import { limits, RateLimitError } from "../../../src/application/ports/RateLimit.js"
import * as MonotonicTime from "../../../src/application/runtime/MonotonicTime.js"
import * as Counting from "../../../src/application/tenants/Counting.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as SetClock from "../../support/SetClock.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const hour = 3_600_000
const back = SetClock.by(-hour)
const ahead = SetClock.by(hour)

test("elapsed time does not depend on the machine's clock setting", function* () {
  const began = yield* MonotonicTime.millis
  yield* Time.adjust("1500 millis")
  expect((yield* back(MonotonicTime.millis)) - began).toBe(1_500)
  expect((yield* ahead(MonotonicTime.millis)) - began).toBe(1_500)
})

describe("a clock that is set back by an hour", () => {
  test("does not keep waiting work from making room", function* () {
    const one = { accountId: Make.alice, requests: 1, elements: 1 }
    let counted = [one]
    const waiting = Effect.sync(() => counted)
    const bounds = { requests: 1, elements: 1, requestsPerAccount: 1, elementsPerAccount: 1 }
    const schedule = OpenRequests.admitScheduled(bounds, { waiting })
    const refused = Effect.isFailure(schedule(one))
    expect(yield* refused).toBe(true)
    counted = []
    yield* Time.adjust("1 second")
    expect(yield* back(refused)).toBe(false)
  })

  test("makes no block the latest one for longer", function* () {
    const { chain } = yield* Monitor.node("any")
    let asked = 0
    const counting = { ...chain, block: () => Effect.sync(() => void asked++).pipe(Effect.as(null)) }
    const known = { ...counting, block: () => Effect.tap(chain.block("latest"), () => counting.block()) }
    const facts = ChainFacts.make()
    yield* facts.block(known, "recent")
    yield* Time.adjust(ChainFacts.recentMillis)
    yield* back(facts.block(known, "recent"))
    expect(asked).toBe(2)
  })

  test("leaves no lane claimed for longer without a question to the journal", function* () {
    let asked = 0
    const claims = Claims.make(
      {
        busy: Effect.succeed([]),
        claim: () => Effect.sync(() => ++asked)
      },
      {
        process: "this",
        owns: () => true,
        independent: Effect.succeed([]),
        tell: () => Effect.void,
        assigned: Stream.never,
        signals: Stream.empty
      }
    )
    yield* claims.take(Make.lane)
    yield* Time.adjust("2 seconds")
    yield* back(claims.take(Make.lane))
    expect(asked).toBe(2)
  })

  test("does not keep counted callers from coming back", function* () {
    let isAway = true
    const first = yield* MemoryRateLimit.make
    const both = Counting.withFailover(
      {
        take: (account, of) =>
          Effect.suspend(() =>
            isAway ? Effect.fail(new RateLimitError({ message: "away" })) : first.take(account, of)
          )
      },
      null
    )
    const isRefused = Effect.map(
      Effect.result(both.take(Make.alice, limits.free)),
      ({ _tag }) => _tag === "Failure"
    )
    expect(yield* isRefused).toBe(true)
    isAway = false
    yield* Time.adjust("5 seconds")
    expect(yield* back(isRefused)).toBe(false)
  })
})
