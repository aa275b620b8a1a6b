import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import {
  accept,
  answer,
  factOf,
  giveUp,
  openIn,
  record,
  refused,
  signOps,
  stateOf
} from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)
  const opOf = (n: number) =>
    Effect.flatMap(Journals.all, (journal) => journal.findOp(Make.alice, Make.chainId, Make.word(n)))
  const outcomeOf = (requestId: string) =>
    Effect.map(
      Effect.flatMap(Journals.all, (journal) => journal.request(requestId)),
      (request) => request?.outcome
    )
  const open = Effect.flatMap(Journals.all, (journal) => journal.open)

  describe(`reorganisations in ${name}`, () => {
    fact(
      "a mined transaction that vanishes is signed again, its ops are sent, its requests are not final",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1, 2])
        const newest = Make.word(0x2000)
        yield* journal.replace(Make.signed(0n, { txHash: newest }))
        const both = [Make.landed(Make.word(1), 0n, { success: false }), Make.landed(Make.word(2), 0n)]
        yield* journal.settle(Make.mined(0n), both, false)
        expect(yield* answer(journal, "r1", "done", {})).toBe("done")
        expect(yield* journal.unsettle(Make.lane, 0n)).toEqual(["r1"])
        for (const n of [1, 2])
          expect(yield* opOf(n)).toMatchObject({
            state: "sent",
            txHash: newest,
            success: null,
            revertData: null
          })
        expect(yield* outcomeOf("r1")).toBeNull()
        expect(yield* openIn(journal)).toEqual(["r1"])
        expect(yield* open).toMatchObject([{ nonce: 0n, state: "signed", mined: null }])
        yield* journal.replace(Make.signed(0n, { txHash: Make.word(0x3000) }))
        expect(yield* answer(journal, "r1", "too early", {})).toBeNull()
        yield* journal.settle(Make.mined(0n), both, false)
        expect(yield* answer(journal, "r1", "done otherwise", {})).toBe("done otherwise")
        expect(yield* outcomeOf("r1")).toBe("done otherwise")
      })
    )

    fact(
      "mined again in another block, or as another version, revokes its former outcomes first",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ops = [1, 2]
        yield* signOps("r1", ops)
        const second = Make.word(0x2000)
        yield* journal.replace(Make.signed(0n, { txHash: second }))
        const outcomes = ops.map((n) => Make.landed(Make.word(n), 0n))
        const moves = [
          Make.mined(0n),
          Make.mined(0n, { blockHash: Make.word(0xb10d), blockNumber: 8n }),
          Make.mined(0n, { txHash: second })
        ]
        for (const mined of moves) {
          yield* journal.settle(mined, outcomes, false)
          yield* answer(journal, "r1", "done", {})
          const { blockHash, blockNumber, success, txHash } = mined
          expect(yield* open).toMatchObject([{ mined: { blockHash, blockNumber, success, txHash } }])
        }
        const failing = Make.mined(0n, { success: false, blockHash: Make.word(0xb10e) })
        expect(yield* journal.settle(failing, outcomes.slice(0, 1), false)).toEqual(["r1"])
        expect(yield* outcomeOf("r1")).toBeNull()
        expect([yield* stateOf(1), yield* stateOf(2)]).toEqual(["settled", "sent"])
        const last = Make.mined(0n, { blockHash: Make.word(0xb10f) })
        yield* journal.settle(last, outcomes.slice(1), true)
        expect([yield* stateOf(1), yield* stateOf(2)]).toEqual(["accepted", "settled"])
        yield* refused(journal.settle(Make.mined(0n, { txHash: second }), [], true))
      })
    )

    fact(
      "at settled depth the ops that did not land are accepted again",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1, 2])
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
        expect(yield* stateOf(2)).toBe("sent")
        const finalise = journal.finalise(Make.lane, 0n, Make.settledDepth)
        expect(yield* finalise).toEqual(["r1"])
        expect(yield* opOf(1)).toMatchObject({ state: "settled", txHash: Make.mined(0n).txHash })
        expect(yield* opOf(2)).toMatchObject({ state: "accepted", txHash: null })
        yield* giveUp(journal, "r1", [2])
        expect(yield* finalise).toEqual(["r1"])
        expect(yield* stateOf(2)).toBe("abandoned")
      })
    )

    fact(
      "a nonce used by a foreign transaction is foreign, and its work continues under another nonce",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1, 2])
        yield* journal.recordInclusions(
          Make.lane.signer,
          Make.chainId,
          [Make.landed(Make.word(1), 0n)],
          Make.node()
        )
        expect(yield* journal.recordExternalUse(Make.lane, 0n, [])).toEqual(["r1"])
        yield* accept(journal, Make.acceptance("d1", [Make.direct("d1")]))
        yield* record(journal, "d1", [0])
        expect(yield* journal.recordExternalUse(Make.lane, 1n, [])).toEqual(["d1"])
        expect(yield* stateOf(1)).toBe("settled")
        expect(yield* opOf(2)).toMatchObject({ state: "accepted", txHash: null })
        expect(yield* open).toEqual([])
        yield* record(journal, "r1", [2])
        yield* journal.settle(Make.mined(2n), [], false)
        expect(yield* record(journal, "d1", [0])).toEqual({ _tag: "recorded" })
        expect((yield* open).map(({ nonce }) => nonce)).toEqual([2n, 3n])
        // A repeat changes no part of the new work.
        expect(yield* journal.recordExternalUse(Make.lane, 0n, [])).toEqual(["r1"])
        expect(yield* stateOf(2)).toBe("sent")
        expect(yield* journal.replace(Make.signed(0n, { txHash: Make.word(0x2000) }))).toBe(false)
        yield* refused(journal.settle(Make.mined(0n), [], true))
      })
    )
  })
}
