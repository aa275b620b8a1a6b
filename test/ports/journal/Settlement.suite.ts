import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { accept, factOf, record, refused, signOps, stateOf } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)
  const opOf = (n: number) =>
    Effect.flatMap(Journals.all, (journal) => journal.findOp(Make.alice, Make.chainId, Make.word(n)))

  describe(`settlement in ${name}`, () => {
    fact(
      "each op's outcome is kept",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1, 2])
        const elsewhere = Make.word(0xe15e)
        const revertData = Hex.unsafe(`0x${"ab".repeat(5_000)}`)
        const outcomes = [
          Make.landed(Make.word(1), 0n, { success: false, revertData }),
          Make.landed(Make.word(2), 0n, { txHash: elsewhere })
        ]
        expect(yield* journal.settle(Make.mined(0n), outcomes, false)).toEqual(["r1"])
        expect(yield* opOf(1)).toMatchObject({
          state: "settled",
          success: false,
          revertData,
          txHash: Make.mined(0n).txHash
        })
        expect(yield* opOf(2)).toMatchObject({
          state: "settled",
          success: true,
          revertData: null,
          txHash: elsewhere
        })
      })
    )

    fact(
      "one authority's holds and settlements of a wallet do not affect another authority",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const stranger = { ...Make.lane, signer: Make.address(0x99) }
        const strange = Make.space(1, { authority: stranger.signer })
        const keys = { from: 0n, to: 0n }
        const intent = { userOpHash: Make.word(7), reserve: 5n }
        yield* accept(journal, Make.acceptance("r8", [Make.op({ ...intent, space: strange })]))
        yield* record(journal, "r8", [0], stranger)
        expect(yield* Make.lease(journal, { ...Make.leaseRequest("r9"), ...strange, keys, count: 1 })).toBe(
          null
        )
        expect(
          yield* Make.lease(journal, { ...Make.leaseRequest("r9"), ...Make.space(1), keys, count: 1 })
        ).toEqual([0n])
        const own = Make.op(intent)
        expect(
          yield* accept(journal, Make.acceptance("r9", [own], { funds: Make.fundsOf([own], 5n) }))
        ).toEqual({ _tag: "accepted" })
        yield* journal.settle(Make.mined(0n, stranger), [Make.landed(Make.word(7), 0n)], true)
        yield* journal.recordInclusions(
          stranger.signer,
          Make.chainId,
          [Make.landed(Make.word(7), 0n)],
          Make.node()
        )
        expect(yield* opOf(7)).toMatchObject({ requestId: "r9", state: "accepted" })
      })
    )

    fact(
      "at settled depth ops that did not land are accepted again, and no further op is added",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1, 2])
        const outcomes = [1, 2].map((n) => Make.landed(Make.word(n), 0n))
        expect(yield* journal.settle(Make.mined(0n), outcomes.slice(0, 1), true)).toEqual(["r1"])
        expect(yield* opOf(2)).toMatchObject({ state: "accepted", txHash: null })
        expect(yield* journal.settle(Make.mined(0n), outcomes, false)).toEqual(["r1"])
        expect(yield* stateOf(2)).toBe("accepted")
        yield* refused(journal.settle(Make.mined(0n, { txHash: Make.word(0x2000) }), [], true))
        yield* record(journal, "r1", [2])
        expect(yield* opOf(2)).toMatchObject({ state: "sent", txHash: Make.signed(1n).txHash })
      })
    )

    fact(
      "of two outcomes of one op the first one counts",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        const outcomes = [true, false].map((success) => Make.landed(Make.word(1), 0n, { success }))
        yield* journal.settle(Make.mined(0n), outcomes, true)
        expect(yield* opOf(1)).toMatchObject({ state: "settled", success: true })
      })
    )
  })
}
