import { describe, expect } from "@effect/vitest"
import { Cause, Effect } from "effect"
import * as Troubles from "../../../src/application/observe/Troubles.js"
import * as Log from "../../support/Log.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const what = "it could not be done"
const down = (n: number) => Cause.fail(new Error(`node 0x${n.toString(16)} is down since ${n} ms`))

const logged = <E>(work: (troubles: Troubles.Troubles) => Effect.Effect<void, E>) =>
  Effect.gen(function* () {
    const log = Log.make()
    yield* Effect.provide(work(Troubles.make()), log.layer)
    return log.lines.map(({ level, message }) => `${level} ${message}`)
  })

describe("a repeated failure", () => {
  test("is logged once for all it concerns at a place, then at growing intervals, then once when it ends", function* () {
    const lines = yield* logged((troubles) =>
      Effect.gen(function* () {
        // Sixteen transactions, each failing every second for eight minutes.
        for (let second = 0; second < 480; second += 1) {
          for (let n = 0; n < 16; n += 1)
            yield* troubles.failed({ what, place: "lane", subject: String(n) }, down(second * 16 + n))
          yield* Time.adjust("1 second")
        }
        for (let n = 0; n < 15; n += 1) yield* troubles.passed({ what, place: "lane", subject: String(n) })
        // One of them still fails.
        yield* troubles.failed({ what, place: "lane", subject: "15" }, down(1))
        yield* troubles.passed({ what, place: "lane", subject: "15" })
        yield* troubles.passed({ what, place: "lane", subject: "15" })
      })
    )
    // At 0, 1, 3 and 7 minutes.
    expect(lines).toEqual([...Array.from({ length: 4 }, () => `ERROR ${what}`), `INFO over: ${what}`])
  })

  test("is logged for each cause and each place, and again after it ended", function* () {
    const lines = yield* logged((troubles) =>
      Effect.gen(function* () {
        yield* troubles.failed({ what, place: "lane" }, down(1))
        yield* troubles.failed({ what, place: "lane" }, Cause.die(new Error("the database is away")))
        yield* troubles.failed({ what, place: "other" }, down(2))
        yield* troubles.passed({ what, place: "lane" })
        yield* Time.adjust("1 minute")
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

  test("is one trouble when it comes and goes within a minute", function* () {
    const lines = yield* logged((troubles) =>
      Effect.gen(function* () {
        // Every twenty seconds for an hour, with a differently named cause each time.
        for (let n = 0; n < 180; n += 1) {
          yield* troubles.failed({ what, place: "node" }, Cause.fail(new Error(`request b${n}f-c was lost`)))
          yield* Time.adjust("10 seconds")
          yield* troubles.passed({ what, place: "node" })
          yield* Time.adjust("10 seconds")
        }
      })
    )
    // At 0, 1, 3, 7, 15 and 31 minutes, each with its end.
    expect(lines).toHaveLength(12)
  })

  test("has few lines even where a node words each failure differently", function* () {
    const words = Array.from({ length: 676 }, (_, n) =>
      String.fromCharCode(97 + (n % 26), 97 + Math.floor(n / 26))
    )
    const lines = yield* logged((troubles) =>
      Effect.forEach(words, (word) => troubles.failed({ what, place: "node" }, Cause.fail(word)), {
        discard: true
      })
    )
    expect(lines.length).toBeLessThan(20)
  })

  test("starts again after long silence, without a line that it ended", function* () {
    const lines = yield* logged((troubles) =>
      Effect.gen(function* () {
        for (let minute = 0; minute < 60; minute += 1) {
          yield* troubles.failed({ what, place: "lane", subject: "1" }, down(1))
          yield* Time.adjust("1 minute")
        }
        yield* Time.adjust("11 minutes")
        yield* troubles.failed({ what, place: "lane", subject: "2" }, down(2))
      })
    )
    expect(lines).toHaveLength(7)
  })
})
