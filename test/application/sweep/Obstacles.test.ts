import { expect } from "@effect/vitest"
import { Effect, Metric } from "effect"
import * as Metrics from "../../../src/application/observe/Metrics.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import * as Obstacles from "../../../src/application/sweep/Obstacles.js"
import * as Log from "../../support/Log.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const stranded = Effect.map(Metric.value(Metrics.workStranded), ({ value }) => value)
const fails = Effect.fail(Obstacles.of("it can not be read"))

test("what can not be taken up is counted until it is taken up", function* () {
  const { past } = Obstacles.make()
  yield* past("one", fails)
  yield* past("other", fails)
  expect(yield* stranded).toBe(2)
  yield* past("one", Effect.void)
  expect(yield* stranded).toBe(2)
  yield* Time.adjust("1 minute")
  yield* past("one", Effect.void)
  expect(yield* stranded).toBe(1)
})

test("what is not to be taken up any more is not counted: cancelled, expired, another process's", function* () {
  const { forgetUnseen, past } = Obstacles.make()
  yield* past("cancelled", fails)
  yield* past("other", fails)
  for (let seconds = 0; seconds < 62; seconds += 2) {
    yield* past("other", fails)
    yield* forgetUnseen
    yield* Time.adjust("2 seconds")
  }
  yield* forgetUnseen
  expect(yield* stranded).toBe(1)
})

test("what can not be taken up is tried again after 2, 4, 8 seconds and so on, up to a minute", function* () {
  const { forgetUnseen, past } = Obstacles.make()
  const tries: Array<number> = []
  for (let seconds = 0; seconds <= 210; seconds += 1) {
    // What is put off is seen, and not forgotten.
    yield* forgetUnseen
    if (seconds > 0) expect(yield* stranded).toBe(1)
    if (seconds % 7 === 0)
      yield* past(
        "one",
        Effect.andThen(
          Effect.sync(() => tries.push(seconds)),
          fails
        )
      )
    yield* Time.adjust("1 second")
  }
  expect(tries).toEqual([0, 7, 14, 28, 49, 84, 147, 210])
})

test("what is interrupted was not in the way", function* () {
  const { past } = Obstacles.make()
  yield* past("one", Effect.interrupt)
  expect(yield* stranded).toBe(0)
  yield* past("one", fails)
  expect(yield* stranded).toBe(1)
})

test("what keeps many from being taken up is logged once for each cause, and when it is over", function* () {
  const lines = yield* Log.listen
  const { past } = Obstacles.make()
  const requests = Array.from({ length: 50 }, (_, n) => `request ${n}`)
  yield* Effect.forEach(requests, (name) => past(name, fails))
  yield* past("request other", Effect.fail(Obstacles.of("it has no node")))
  yield* Time.adjust("2 seconds")
  yield* Effect.forEach(requests, (name) => past(name, fails))
  expect(lines.map(({ annotations, level }) => [level, annotations.work])).toEqual([
    ["ERROR", "request 0"],
    ["ERROR", "request other"]
  ])
  yield* Time.adjust("4 seconds")
  yield* Effect.forEach(requests, (name) => past(name, Effect.void))
  expect(lines.slice(2)).toMatchObject([{ level: "INFO", annotations: { times: 100, seconds: 6 } }])
})

test("what passes by itself is a warning, what waits for the operator and what crashed an error", function* () {
  const lines = yield* Log.listen
  const { past } = Obstacles.make()
  yield* past("node away", Effect.fail(Obstacles.passing("the node does not answer")))
  yield* past("store away", Effect.die(new JournalError({ message: "the store does not answer" })))
  yield* past("key gone", fails)
  yield* past("crash", Effect.die(new Error("a crash")))
  expect(lines.map(({ annotations, level }) => [level, annotations.work])).toEqual([
    ["WARN", "node away"],
    ["WARN", "store away"],
    ["ERROR", "key gone"],
    ["ERROR", "crash"]
  ])
})
