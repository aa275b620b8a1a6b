import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as Troubles from "../../../src/application/observe/Troubles.js"
import * as Log from "../../support/Log.js"

const what = "it could not be done"
const down = (n: number) => Cause.fail(new Error(`node 0x${n.toString(16)} is down since ${n} ms`))

const logged = <E>(work: (troubles: Troubles.Troubles) => Effect.Effect<void, E>) =>
  Effect.gen(function* () {
    const log = Log.make()
    yield* Effect.provide(work(Troubles.make()), log.layer)
    return log.lines.map(({ level, message }) => `${level} ${message}`)
  })

describe("what fails again and again", () => {
  it.effect(
    "is told once for all that it concerns at a place, then at growing intervals, then that it is over",
    () =>
      Effect.gen(function* () {
        const lines = yield* logged((troubles) =>
          Effect.gen(function* () {
            // Sixteen transactions, each failing every second for eight minutes.
            for (let second = 0; second < 480; second += 1) {
              for (let n = 0; n < 16; n += 1)
                yield* troubles.failed({ what, place: "lane", subject: String(n) }, down(second * 16 + n))
              yield* TestClock.adjust("1 second")
            }
            for (let n = 0; n < 15; n += 1)
              yield* troubles.passed({ what, place: "lane", subject: String(n) })
            // One of them still fails.
            yield* troubles.failed({ what, place: "lane", subject: "15" }, down(1))
            yield* troubles.passed({ what, place: "lane", subject: "15" })
            yield* troubles.passed({ what, place: "lane", subject: "15" })
          })
        )
        // At 0, 1, 3 and 7 minutes.
        expect(lines).toEqual([...Array.from({ length: 4 }, () => `ERROR ${what}`), `INFO over: ${what}`])
      })
  )

  it.effect("is told for each cause, each place, and again once it was over", () =>
    Effect.gen(function* () {
      const lines = yield* logged((troubles) =>
        Effect.gen(function* () {
          yield* troubles.failed({ what, place: "lane" }, down(1))
          yield* troubles.failed({ what, place: "lane" }, Cause.die(new Error("the database is away")))
          yield* troubles.failed({ what, place: "other" }, down(2))
          yield* troubles.passed({ what, place: "lane" })
          yield* troubles.failed({ what, place: "lane" }, down(3))
        })
      )
      expect(lines.map((line) => line.slice(0, 5))).toEqual([
        "ERROR",
        "ERROR",
        "ERROR",
        "INFO ",
        "INFO ",
        "ERROR"
      ])
    })
  )
})
