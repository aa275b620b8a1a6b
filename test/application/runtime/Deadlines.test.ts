import { describe, expect } from "@effect/vitest"
import { Chunk, Effect, TestClock } from "effect"
import * as Deadlines from "../../../src/application/runtime/Deadlines.js"
import { test } from "../../support/Test.js"

/** Sets deadlines that say their name when they are due. */
const setup = Effect.withFiberRuntime<{
  readonly told: Array<string>
  readonly set: (millis: number, name: string) => () => void
}>((fiber) => {
  const told: Array<string> = []
  return Effect.succeed({
    told,
    set: (millis, name) => Deadlines.set(fiber, millis, () => void told.push(name))
  })
})

const sleeping = Effect.map(TestClock.sleeps(), Chunk.size)

describe("deadlines", () => {
  test("are told when they are due, in their order, whenever they were set", function* () {
    const { set, told } = yield* setup
    set(5_000, "last")
    set(20, "first")
    set(700, "third")
    set(5_000, "last too")
    yield* TestClock.adjust(19)
    expect(told).toEqual([])
    yield* TestClock.adjust(1)
    expect(told).toEqual(["first"])
    set(10, "second")
    yield* TestClock.adjust(680)
    expect(told).toEqual(["first", "second", "third"])
    yield* TestClock.adjust(4_299)
    expect(told).toEqual(["first", "second", "third"])
    yield* TestClock.adjust(1)
    expect(told).toEqual(["first", "second", "third", "last", "last too"])
  })

  test("are not told when they were called off, which may be said again and afterwards", function* () {
    const { set, told } = yield* setup
    const [off, on] = [set(50, "off"), set(50, "on")]
    off()
    off()
    yield* TestClock.adjust(50)
    on()
    expect(told).toEqual(["on"])
    set(50, "of the same length")
    off()
    on()
    yield* TestClock.adjust(50)
    expect(told).toEqual(["on", "of the same length"])
  })

  test("have one fiber that sleeps, which ends within a tenth of a second when all are called off", function* () {
    const { set } = yield* setup
    const all = Array.from({ length: 1_000 }, (_, n) => set(60_000 - n, `${n}`))
    yield* Effect.yieldNow()
    expect(yield* sleeping).toBe(1)
    yield* TestClock.adjust(10_000)
    expect(yield* sleeping).toBe(1)
    for (const off of all) off()
    yield* TestClock.adjust(100)
    expect(yield* sleeping).toBe(0)
  })
})
