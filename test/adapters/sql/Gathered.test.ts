import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Gathered from "../../../src/adapters/sql/Gathered.js"

/** A method whose transactions end when they are told to, and what each of them was given. */
const gate = Effect.gen(function* () {
  const given: Array<ReadonlyArray<string>> = []
  const ends: Array<Deferred.Deferred<void, string>> = []
  const method = Gathered.make((items: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const end = yield* Deferred.make<void, string>()
      given.push(items)
      ends.push(end)
      yield* Deferred.await(end)
      return items.map((item) => (item.startsWith("bad") ? Effect.fail(item) : Effect.succeed(`did ${item}`)))
    })
  )
  const end = (place: number) => Deferred.succeed(ends[place] as Deferred.Deferred<void, string>, undefined)
  const fail = (place: number) => Deferred.fail(ends[place] as Deferred.Deferred<void, string>, "all of it")
  const call = (item: string) => Effect.forkChild(Effect.exit(method(item)))
  /** Until so many transactions have begun. */
  const begun = (count: number): Effect.Effect<void> =>
    Effect.suspend(() =>
      given.length >= count ? Effect.void : Effect.andThen(Effect.yieldNow, begun(count))
    )
  return { given, end, fail, call, begun }
})

describe("calls that share a transaction", () => {
  it.effect("are those that come while two are under way; each has its own answer", () =>
    Effect.gen(function* () {
      const { begun, call, end, given } = yield* gate
      const calls = yield* Effect.forEach(["a", "b", "c", "bad d", "e"], call)
      yield* begun(2)
      expect(given).toEqual([["a"], ["b"]])
      yield* end(1)
      yield* begun(3)
      expect(given[2]).toEqual(["c", "bad d", "e"])
      yield* end(2)
      yield* end(0)
      expect(yield* Effect.forEach(calls, Fiber.join)).toEqual([
        Exit.succeed("did a"),
        Exit.succeed("did b"),
        Exit.succeed("did c"),
        Exit.fail("bad d"),
        Exit.succeed("did e")
      ])
    })
  )

  it.effect("are tried apart and at once when it fails, so that none fails or waits for another", () =>
    Effect.gen(function* () {
      const { begun, call, end, fail, given } = yield* gate
      const calls = yield* Effect.forEach(["a", "b", "c", "d"], call)
      yield* begun(2)
      yield* end(0)
      yield* begun(3)
      yield* fail(2)
      yield* begun(5)
      yield* fail(3)
      yield* end(4)
      yield* end(1)
      expect(given).toEqual([["a"], ["b"], ["c", "d"], ["c"], ["d"]])
      expect(yield* Effect.forEach(calls, Fiber.join)).toEqual([
        Exit.succeed("did a"),
        Exit.succeed("did b"),
        Exit.fail("all of it"),
        Exit.succeed("did d")
      ])
    })
  )

  it.effect("are not begun for who was interrupted before, and are ended for who is meanwhile", () =>
    Effect.gen(function* () {
      const { begun, call, end, given } = yield* gate
      const [first, second, third, fourth] = [
        yield* call("a"),
        yield* call("b"),
        yield* call("c"),
        yield* call("d")
      ]
      yield* begun(2)
      yield* Fiber.interrupt(third)
      yield* Effect.sync(() => first.interruptUnsafe())
      yield* Effect.yieldNow
      const isOver = Option.isSome(yield* Effect.sync(() => Option.fromUndefinedOr(first.pollUnsafe())))
      yield* end(0)
      yield* Fiber.await(first)
      yield* begun(3)
      expect(given).toEqual([["a"], ["b"], ["d"]])
      yield* end(1)
      yield* end(2)
      expect([yield* Fiber.join(second), yield* Fiber.join(fourth)]).toEqual([
        Exit.succeed("did b"),
        Exit.succeed("did d")
      ])
      expect(isOver).toBe(false)
    })
  )

  it.effect("end for who is interrupted in the moment in which they are over", () =>
    Effect.gen(function* () {
      const { begun, call, end } = yield* gate
      const fiber = yield* call("a")
      yield* begun(1)
      yield* Effect.all([Effect.sync(() => fiber.interruptUnsafe()), end(0)])
      expect(Exit.isExit(yield* Fiber.await(fiber))).toBe(true)
    })
  )

  it.effect("all die of a defect, and the next ones do not", () =>
    Effect.gen(function* () {
      let isBroken = true
      const method = Gathered.make((items: ReadonlyArray<number>) =>
        isBroken ? Effect.die("broken") : Effect.succeed(items.map((item) => Effect.succeed(item)))
      )
      const broken = yield* Effect.forEach([1, 2, 3], (item) => Effect.exit(method(item)), {
        concurrency: "unbounded"
      })
      expect(broken).toEqual([Exit.die("broken"), Exit.die("broken"), Exit.die("broken")])
      isBroken = false
      expect(yield* method(4)).toBe(4)
    })
  )
})
