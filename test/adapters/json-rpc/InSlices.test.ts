import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as InSlices from "../../../src/adapters/json-rpc/InSlices.js"
import type { Steps } from "../../../src/domain/primitives/Steps.js"

const broken = new Error("broken")

describe("long work", () => {
  it.effect("gives its result after all of its steps", () =>
    Effect.gen(function* () {
      let steps = 0
      const result = yield* InSlices.run(function* (): Steps<number> {
        for (; steps < 1_000; steps++) yield
        return steps
      })
      expect(result).toBe(1_000)
    })
  )

  it.effect("that throws is a defect of who asked for it, and holds up nobody else", () =>
    Effect.gen(function* () {
      const failing = yield* Effect.forkChild(
        InSlices.run(function* (): Steps<never> {
          yield
          throw broken
        })
      )
      const beside = yield* Effect.forkChild(
        InSlices.run(function* (): Steps<string> {
          yield
          return "beside"
        })
      )
      expect(yield* Fiber.await(failing)).toEqual(Exit.die(broken))
      expect(yield* Fiber.join(beside)).toBe("beside")
      expect(
        yield* InSlices.run(function* (): Steps<string> {
          yield
          return "after"
        })
      ).toBe("after")
    })
  )

  it.effect("that nobody waits for any more is left, and what is queued after it goes on", () =>
    Effect.gen(function* () {
      const endless = yield* Effect.forkChild(
        InSlices.run(function* (): Steps<never> {
          for (;;) yield
        })
      )
      const next = yield* Effect.forkChild(
        InSlices.run(function* (): Steps<string> {
          yield
          return "next"
        })
      )
      yield* Effect.yieldNow
      yield* Fiber.interrupt(endless)
      expect(yield* Fiber.join(next)).toBe("next")
    })
  )
})
