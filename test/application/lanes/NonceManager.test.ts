import { expect } from "@effect/vitest"
import { Context, Effect, Fiber } from "effect"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

test("exclusive work runs one at a time per lane, in parallel with other lanes", function* () {
  const lanes = NonceManager.make(Context.get(yield* InMemory.makeJournal, TransactionJournal))
  const seen: Array<string> = []
  const work = (name: string) =>
    Effect.gen(function* () {
      seen.push(`${name} begins`)
      yield* Effect.sleep("1 second")
      seen.push(`${name} ends`)
    })
  const all = yield* Effect.forkChild(
    Effect.all(
      [
        lanes.exclusive(Make.lane, work("a")),
        lanes.exclusive({ ...Make.lane }, work("b")),
        lanes.exclusive({ ...Make.lane, chainId: 137n }, work("c"))
      ],
      { concurrency: "unbounded" }
    )
  )
  yield* Time.adjust("2 seconds")
  yield* Fiber.join(all)
  expect(seen.slice(0, 2)).toEqual(["a begins", "c begins"])
  expect(seen.indexOf("b begins")).toBeGreaterThan(seen.indexOf("a ends"))
})
