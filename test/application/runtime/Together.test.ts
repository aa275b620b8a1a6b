import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import * as Together from "../../../src/application/runtime/Together.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const setup = Effect.gen(function* () {
  const told: Array<string> = []
  const open = yield* Deferred.make<void>()
  const tell = (text: string) => Effect.sync(() => void told.push(text))
  /** Never ends by itself; once it is interrupted it ends when `open` is done. */
  const slow = (name: string) =>
    Effect.onInterrupt(Effect.andThen(tell(`${name} began`), Effect.never), () =>
      Effect.andThen(Deferred.await(open), tell(`${name} ended`))
    )
  return { told, open, tell, slow }
})

const settled: Effect.Effect<void> = Effect.yieldNow.pipe(Effect.repeat({ times: 20 }))

describe("effects together", () => {
  test("wait for each other, and their results are in their order", function* () {
    const [one, other] = [yield* Deferred.make<number>(), yield* Deferred.make<number>()]
    const results = yield* Together.all([
      Effect.andThen(Deferred.await(other), Effect.as(Deferred.succeed(one, 1), "first")),
      Effect.andThen(Deferred.succeed(other, 2), Deferred.await(one)),
      Effect.succeed(null)
    ])
    expect(results).toEqual(["first", 1, null])
    expect(yield* Together.forEach([], () => Effect.succeed(1))).toEqual([])
    expect(yield* Together.all<ReadonlyArray<Effect.Effect<number>>>([])).toEqual([])
  })

  test("fail with the first failure, when the others have been interrupted and have ended", function* () {
    const { open, slow, tell, told } = yield* setup
    const fail = yield* Deferred.make<never, string>()
    const all = yield* Effect.forkChild(
      Effect.exit(Together.forEach(["a", "b", "c"], (it) => (it === "b" ? Deferred.await(fail) : slow(it))))
    )
    yield* settled
    yield* Deferred.fail(fail, "no")
    yield* settled
    expect(all.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(open, undefined)
    expect(yield* Fiber.join(all)).toEqual(Exit.fail("no"))
    expect(told).toEqual(["a began", "c began", "a ended", "c ended"])
    const begun = Together.all([slow("d"), Effect.fail("at once"), tell("e began")])
    expect(yield* Effect.exit(begun)).toEqual(Exit.fail("at once"))
    expect(told.slice(4)).toEqual(["d began", "d ended"])
  })

  test("end with their parent, which waits for that", function* () {
    const { open, slow, told } = yield* setup
    const all = yield* Effect.forkChild(Together.all([slow("a"), slow("b")]))
    yield* settled
    const interrupting = yield* Effect.forkChild(Fiber.interrupt(all))
    yield* settled
    expect(interrupting.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(open, undefined)
    expect(Exit.hasInterrupts(yield* Fiber.join(interrupting))).toBe(true)
    expect(told).toEqual(["a began", "b began", "a ended", "b ended"])
  })
})

describe("an effect within a time", () => {
  const late = () => Effect.fail("late")

  test("gives what it gives, and what it takes with it ends", function* () {
    expect(yield* Together.within(Effect.succeed(1), 1_000, late)).toBe(1)
    const slow = yield* Effect.forkChild(Together.within(Effect.delay(Effect.succeed(2), 999), 1_000, late))
    yield* settled
    yield* Time.adjust(999)
    expect(yield* Fiber.join(slow)).toBe(2)
    expect(yield* Effect.exit(Together.within(Effect.fail("no"), 1_000, late))).toEqual(Exit.fail("no"))
  })

  test("is late after it, interrupted and not waited for, also where nothing may be interrupted", function* () {
    const { open, slow, told } = yield* setup
    const fiber = yield* Effect.forkChild(
      Effect.exit(Effect.uninterruptible(Together.within(slow("it"), 1_000, late)))
    )
    yield* settled
    yield* Time.adjust(1_000)
    expect(yield* Fiber.join(fiber)).toEqual(Exit.fail("late"))
    expect(told).toEqual(["it began"])
    yield* Deferred.succeed(open, undefined)
    yield* settled
    expect(told).toEqual(["it began", "it ended"])
  })

  test("at most, is not given up where its parent may not be interrupted, and is late all the same", function* () {
    const seen: Array<Exit.Exit<unknown, unknown>> = []
    const { slow, told } = yield* setup
    const fiber = yield* Effect.forkChild(
      Effect.uninterruptible(
        Effect.map(Effect.exit(Together.atMost(slow("it"), 1_000, late)), (exit) => seen.push(exit))
      )
    )
    yield* settled
    const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
    yield* Time.adjust(999)
    expect(fiber.pollUnsafe()).toBeUndefined()
    yield* Time.adjust(1)
    yield* Fiber.join(interrupting)
    expect(seen).toEqual([Exit.fail("late")])
    expect(told).toEqual(["it began"])
  })
})
