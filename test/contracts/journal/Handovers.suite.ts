import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { Journal } from "../../../src/application/ports/Journal.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import { acceptOp, factOf, refused, signOps, stateOf } from "../../support/journal/Facts.js"
import * as Make from "../../support/journal/Make.js"

export const suite = (name: string, layer: Layer.Layer<Journal>): void => {
  const fact = factOf(layer)
  const opOf = (n: number) =>
    Effect.flatMap(Journal, (journal) => journal.findOp(Make.alice, Make.chainId, Make.word(n)))
  const land = (...ns: ReadonlyArray<number>) =>
    Effect.flatMap(Journal, (journal) =>
      journal.land(
        Make.lane.signer,
        Make.chainId,
        ns.map((n) => Make.landed(Make.word(n), 0n))
      )
    )

  describe(`ops in other hands in ${name}`, () => {
    fact(
      "ops that are handed over are sent, in no transaction of ours",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* journal.handOver("r1", [1])
        yield* journal.handOver("r1", [1])
        expect(yield* opOf(1)).toMatchObject({ state: "sent", txHash: null })
        expect(yield* stateOf(2)).toBe("accepted")
        yield* refused(journal.abandon("r1", [1]))
        yield* refused(journal.allocate(Make.allocation("r1", { ops: [1] })))
        expect((yield* journal.request("r1"))?.txHashes).toEqual([])
      })
    )

    fact(
      "only accepted ops with a hash are handed over, all or none of a call",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* signOps("r1", [1])
        yield* acceptOp("r1", 2)
        yield* journal.accept(Make.acceptance("r1", [Make.op({ index: 3, nonceKey: 3n })]))
        yield* acceptOp("r1", 4)
        yield* journal.abandon("r1", [4])
        for (const wrong of [1, 3, 4, 5]) yield* refused(journal.handOver("r1", [2, wrong]))
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        yield* refused(journal.handOver("r1", [2, 1]))
        expect(yield* stateOf(2)).toBe("accepted")
      })
    )

    fact(
      "an op that was handed over since the allocation is in no bytes that are stored",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* acceptOp("r1", 1)
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* journal.handOver("r1", [1])
        yield* refused(journal.recordSigned(Make.signed(0n)))
        yield* journal.takeBack("r1", [1])
        yield* journal.recordSigned(Make.signed(0n))
        expect(yield* opOf(1)).toMatchObject({ txHash: Make.signed(0n).txHash })
      })
    )

    fact(
      "what can land no more is accepted again, unless it is in a transaction of ours",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* signOps("r1", [1])
        for (const n of [2, 3]) yield* acceptOp("r1", n)
        yield* journal.handOver("r1", [2, 3])
        yield* land(3)
        yield* journal.takeBack("r1", [1, 2, 3, 9])
        expect(yield* Effect.all([1, 2, 3].map(stateOf))).toEqual(["sent", "accepted", "settled"])
        yield* journal.settle(Make.mined(0n), [], false)
        yield* journal.takeBack("r1", [1])
        expect(yield* stateOf(1)).toBe("sent")
        yield* journal.abandon("r1", [2])
      })
    )

    fact(
      "ops that others landed are settled, wherever they were; the others are ignored",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* signOps("r1", [1])
        yield* acceptOp("r2", 2)
        yield* acceptOp("r3", 3)
        yield* acceptOp("r4", 4)
        yield* journal.handOver("r3", [3])
        yield* journal.abandon("r4", [4])
        const elsewhere = Make.word(0xe15e)
        const revertData = Hex.unsafe("0xdead")
        const outcomes = [1, 2, 3, 4, 99].map((n) =>
          Make.landed(Make.word(n), 0n, { success: false, txHash: elsewhere, revertData })
        )
        for (const [authority, chainId] of [
          [Make.address(0x99), Make.chainId],
          [Make.lane.signer, 1n]
        ] as const)
          expect(yield* journal.land(authority, chainId, outcomes)).toEqual([])
        const tell = journal.land(Make.lane.signer, Make.chainId, outcomes)
        expect(yield* tell).toEqual(["r1", "r2", "r3"])
        for (const n of [1, 2, 3])
          expect(yield* opOf(n)).toMatchObject({
            state: "settled",
            success: false,
            txHash: elsewhere,
            revertData
          })
        expect(yield* stateOf(4)).toBe("abandoned")
        expect(yield* tell).toEqual(["r1", "r2", "r3"])
        expect(yield* land(1, 1)).toEqual(["r1"])
        expect(yield* opOf(1)).toMatchObject({ success: false, txHash: elsewhere })
        yield* refused(journal.abandon("r2", [2]))
      })
    )

    fact(
      "an op that others landed keeps that outcome when our transaction with it fails for good",
      Effect.gen(function* () {
        const journal = yield* Journal
        yield* signOps("r1", [1, 2])
        yield* land(1)
        yield* journal.settle(Make.mined(0n, { success: false }), [], true)
        expect(yield* opOf(1)).toMatchObject({ state: "settled", success: true })
        expect(yield* stateOf(2)).toBe("accepted")
      })
    )
  })
}
