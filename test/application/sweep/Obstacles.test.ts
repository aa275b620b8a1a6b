import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/TestClock"
import * as Metrics from "../../../src/application/observe/Metrics.js"
import * as Obstacles from "../../../src/application/sweep/Obstacles.js"

const stranded = Effect.map(Metric.value(Metrics.workStranded), ({ value }) => value)
const fails = Effect.fail(Obstacles.of("it can not be read"))

it.effect("what can not be taken up is counted until it is taken up", () =>
  Effect.gen(function* () {
    const { past } = Obstacles.make()
    yield* past("one", fails)
    yield* past("other", fails)
    expect(yield* stranded).toBe(2)
    yield* past("one", Effect.void)
    expect(yield* stranded).toBe(2)
    yield* TestClock.adjust("1 minute")
    yield* past("one", Effect.void)
    expect(yield* stranded).toBe(1)
  })
)

it.effect("what is not to be taken up any more is not counted: cancelled, expired, another process's", () =>
  Effect.gen(function* () {
    const { forgetUnseen, past } = Obstacles.make()
    yield* past("cancelled", fails)
    yield* past("other", fails)
    for (let seconds = 0; seconds < 62; seconds += 2) {
      yield* past("other", fails)
      yield* forgetUnseen
      yield* TestClock.adjust("2 seconds")
    }
    yield* forgetUnseen
    expect(yield* stranded).toBe(1)
  })
)
