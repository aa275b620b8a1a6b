import { Effect, Fiber } from "effect"
import { describe, expect } from "vitest"
import * as InterruptedAt from "../../../support/InterruptedAt.js"
import { accept } from "../../../support/journal/Facts.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as Journals from "../../../support/journal/Journals.js"
import * as Make from "../../../support/journal/Make.js"
import { testOver } from "../../../support/Test.js"

const test = testOver(InMemory.journal)

/** The request with this number, by a separate wallet. */
const requestOf = (n: number) => Make.acceptance(`r${n}`, [Make.op({ space: Make.space(n) })])

describe("an acceptance that is interrupted at any moment", () => {
  test("is whole or absent, and blocks neither its neighbour nor the next one", function* () {
    const journal = yield* Journals.all
    const seen = new Set<boolean>()
    for (let step = 1; step <= 120; step++) {
      const [own, neighbour] = [requestOf(3 * step), requestOf(3 * step + 1)]
      const beside = yield* Effect.forkChild(accept(journal, neighbour))
      yield* InterruptedAt.step(step, accept(journal, own))
      expect([step, yield* Fiber.join(beside)]).toEqual([step, { _tag: "accepted" }])
      const isThere = (yield* journal.request(own.requestId)) !== null
      seen.add(isThere)
      // Its op has the nonce only if the op exists.
      const other = yield* accept(journal, Make.acceptance(`o${step}`, own.ops))
      expect([step, isThere, other?._tag]).toEqual([step, isThere, isThere ? "nonceTaken" : "accepted"])
    }
    expect(seen).toEqual(new Set([true, false]))
  })
})
