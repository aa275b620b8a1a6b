import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Records from "../../../src/application/ports/journal/Records.js"
import { factOf, record } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const recorded = { _tag: "recorded" }
const otherRoute = { _tag: "otherRoute" }

/** Accepts op 1 of one EntryPoint, ops 2 and 3 of another one, and a direct transaction `d1` of the signer. */
const acceptRoutes = Effect.gen(function* () {
  const journal = yield* Journals.all
  const opOf = (n: number, entryPoint = Make.entryPoint) =>
    Make.op({ index: n, nonceKey: BigInt(n), userOpHash: Make.word(n), space: Make.space(1, { entryPoint }) })
  yield* journal.accept([
    Make.acceptance("r2", [opOf(1), opOf(2, Make.otherEntryPoint), opOf(3, Make.otherEntryPoint)]),
    Make.acceptance("d1", [Make.direct("d1")])
  ])
})

type Route = readonly [requestId: string, indexes: ReadonlyArray<number>]

const one: Route = ["r2", [1]]
const other: Route = ["r2", [2]]
const direct: Route = ["d1", [0]]

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)
  const sign = ([requestId, indexes]: Route, over: Partial<Records.Recording> = {}) =>
    Effect.flatMap(Journals.all, (journal) => record(journal, requestId, indexes, over))

  describe(`routes of the lane in ${name}`, () => {
    for (const [text, first, second] of [
      ["an op of another EntryPoint waits for the transaction of the first", one, other],
      ["a transaction of the signer's own waits for ops", one, direct],
      ["ops wait for a transaction of the signer's own", direct, one]
    ] as const)
      fact(
        text,
        Effect.gen(function* () {
          const journal = yield* Journals.all
          yield* acceptRoutes
          yield* sign(first)
          expect(yield* sign(second)).toEqual(otherRoute)
          yield* journal.replace(Make.signed(0n, { txHash: Make.word(0x2000), addedCost: 1n }))
          expect(yield* sign(second)).toEqual(otherRoute)
          yield* journal.settle(Make.mined(0n), [], false)
          expect(yield* sign(second)).toEqual(recorded)
          expect((yield* journal.openOf(Make.lane)).map(({ nonce }) => nonce)).toEqual([0n, 1n])
        })
      )

    fact(
      "transactions of one route follow each other without waiting",
      Effect.gen(function* () {
        yield* acceptRoutes
        expect(yield* sign(other)).toEqual(recorded)
        expect(yield* sign(["r2", [3]])).toEqual(recorded)
      })
    )

    fact(
      "another route is reported before a lack of funds",
      Effect.gen(function* () {
        yield* acceptRoutes
        yield* sign(one)
        expect(yield* sign(other, { balance: 0n })).toEqual(otherRoute)
      })
    )
  })
}
