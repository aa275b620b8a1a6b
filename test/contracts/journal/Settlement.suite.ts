import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { Journal } from "../../../src/application/ports/Journal.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import { acceptOp, factOf, refused, stateOf } from "../../support/journal/Facts.js"
import * as Make from "../../support/journal/Make.js"

export const suite = (name: string, layer: Layer.Layer<Journal>): void => {
  const fact = factOf(layer)

  describe(`settlement in ${name}`, () => {
    fact(
      "what became of each op is kept",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* journal.allocate(Make.allocation("r1", { ops: [1, 2] }))
        yield* journal.recordSigned(Make.signed(0n))
        const elsewhere = Make.word(0xe15e)
        const revertData = Hex.unsafe(`0x${"ab".repeat(5_000)}`)
        yield* journal.settle(Make.mined(0n), [
          Make.landed(Make.word(1), 0n, { success: false, revertData }),
          Make.landed(Make.word(2), 0n, { txHash: elsewhere })
        ])
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toMatchObject({
          state: "settled",
          success: false,
          revertData,
          txHash: Make.mined(0n).txHash
        })
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(2))).toMatchObject({
          state: "settled",
          success: true,
          revertData: null,
          txHash: elsewhere
        })
      })
    )

    fact(
      "settling again changes nothing, and may add ops that were found later",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* journal.allocate(Make.allocation("r1", { ops: [1, 2] }))
        yield* journal.recordSigned(Make.signed(0n))
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)])
        const settled = yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))
        yield* journal.settle(Make.mined(0n), [
          Make.landed(Make.word(1), 0n, { success: false, txHash: Make.word(0xbad) }),
          Make.landed(Make.word(2), 0n)
        ])
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toEqual(settled)
        expect(yield* stateOf(2)).toBe("settled")
      })
    )

    fact(
      "a nonce that was never signed cannot be settled",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* acceptOp("r1", 1)
        const settle = journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)])
        yield* refused(settle)
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* refused(settle)
        expect(yield* stateOf(1)).toBe("accepted")
      })
    )

    fact(
      "an op that nobody knows, of another chain, or given up, stops no settlement",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* journal.abandon("r1", [2])
        const far = Make.space(1, { chainId: 1n })
        yield* journal.accept(Make.acceptance("r3", [Make.op({ space: far, userOpHash: Make.word(3) })]))
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* journal.recordSigned(Make.signed(0n))
        yield* journal.settle(
          Make.mined(0n),
          [3, 99, 2, 1].map((n) => Make.landed(Make.word(n), 0n))
        )
        expect(yield* stateOf(1)).toBe("settled")
        expect(yield* stateOf(2)).toBe("abandoned")
        expect(yield* journal.findOp(Make.alice, 1n, Make.word(3))).toMatchObject({ state: "accepted" })
      })
    )

    fact(
      "an op that somebody else brought onto the chain before it was sent is settled too",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* journal.recordSigned(Make.signed(0n))
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(2), 0n)])
        expect(yield* stateOf(2)).toBe("settled")
        yield* refused(journal.abandon("r1", [2]))
      })
    )

    fact(
      "an op that can never land is given up by the settlement, and its nonce and money are free",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* acceptOp("r1", 1)
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* journal.recordSigned(Make.signed(0n))
        yield* journal.settle(Make.mined(0n), [{ ...Make.landed(Make.word(1), 0n), success: null }])
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toMatchObject({
          state: "abandoned",
          success: null,
          txHash: Make.mined(0n).txHash
        })
        yield* acceptOp("r2", 1)
        expect(yield* stateOf(1)).toBe("accepted")
      })
    )

    fact(
      "what one authority holds and settles of a wallet means nothing to another one",
      Effect.gen(function* () {
        const journal = yield* Journal
        const stranger = { ...Make.lane, signer: Make.address(0x99) }
        const strange = Make.space(1, { authority: stranger.signer })
        const keys = { from: 0n, to: 0n }
        const intent = { index: 0, userOpHash: Make.word(7), reserve: 5n }
        yield* journal.accept(Make.acceptance("r8", [Make.op({ ...intent, space: strange })]))
        yield* journal.allocate(Make.allocation("r8", { ...stranger, ops: [0] }))
        yield* journal.recordSigned(Make.signed(0n, stranger))
        expect(yield* journal.lease({ ...Make.leaseRequest("r9"), ...strange, keys, count: 1 })).toBe(null)
        expect(
          yield* journal.lease({ ...Make.leaseRequest("r9"), ...Make.space(1), keys, count: 1 })
        ).toEqual([0n])
        const own = Make.op(intent)
        expect(
          yield* journal.accept(Make.acceptance("r9", [own], { funds: Make.fundsOf([own], 5n) }))
        ).toEqual({
          _tag: "accepted"
        })
        yield* journal.settle(Make.mined(0n, stranger), [Make.landed(Make.word(7), 0n)])
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(7))).toMatchObject({
          requestId: "r9",
          state: "accepted"
        })
      })
    )
  })
}
