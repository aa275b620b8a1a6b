import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import * as Wait from "../../../src/application/runtime/Wait.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const setup = Effect.gen(function* () {
  const told: Array<string> = []
  const open = yield* Deferred.make<void>()
  const tell = (text: string) => Effect.sync(() => void told.push(text))
  /** Never ends by itself; once it is interrupted it ends when `open` is done. */
  const slow = Effect.onInterrupt(Effect.andThen(tell("it began"), Effect.never), () =>
    Effect.andThen(Deferred.await(open), tell("it ended"))
  )
  return { told, open, slow }
})

describe("an effect within a time", () => {
  const late = () => Effect.fail("late")

  test("returns its result, and ends its child fibers", function* () {
    expect(yield* Wait.within(Effect.succeed(1), 1_000, late)).toBe(1)
    const slow = yield* Effect.forkChild(Wait.within(Effect.delay(Effect.succeed(2), 999), 1_000, late))
    yield* Time.settle
    yield* Time.adjust(999)
    expect(yield* Fiber.join(slow)).toBe(2)
    expect(yield* Effect.exit(Wait.within(Effect.fail("no"), 1_000, late))).toEqual(Exit.fail("no"))
  })

  test("is late after it, interrupted and not awaited, even in uninterruptible regions", function* () {
    const { open, slow, told } = yield* setup
    const fiber = yield* Effect.forkChild(Effect.exit(Effect.uninterruptible(Wait.within(slow, 1_000, late))))
    yield* Time.settle
    yield* Time.adjust(1_000)
    expect(yield* Fiber.join(fiber)).toEqual(Exit.fail("late"))
    expect(told).toEqual(["it began"])
    yield* Deferred.succeed(open, undefined)
    yield* Time.settle
    expect(told).toEqual(["it began", "it ended"])
  })

  test("is not abandoned when its parent is uninterruptible, and is late nevertheless", function* () {
    const seen: Array<Exit.Exit<unknown, unknown>> = []
    const { slow, told } = yield* setup
    const fiber = yield* Effect.forkChild(
      Effect.uninterruptible(
        Effect.map(Effect.exit(Wait.atMost(slow, 1_000, late)), (exit) => seen.push(exit))
      )
    )
    yield* Time.settle
    const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
    yield* Time.adjust(999)
    expect(fiber.pollUnsafe()).toBeUndefined()
    yield* Time.adjust(1)
    yield* Fiber.join(interrupting)
    expect(seen).toEqual([Exit.fail("late")])
    expect(told).toEqual(["it began"])
  })
})
