import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { accept, acceptOp, factOf, record, signOps, stateOf } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const cancellation = { code: "request_cancelled", outcome: "cancelled", onlyUnsigned: false } as const
const expiry = { code: "request_expired", outcome: "expired", onlyUnsigned: true } as const

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`cancellations in ${name}`, () => {
    fact(
      "a cancelled element cannot be signed or prepared again",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        const ops = yield* journal.ready(Make.lane, 9)
        expect(yield* journal.cancel("r1", cancellation)).toBe("final")
        expect(yield* journal.record(Make.recording(0n, ops))).toMatchObject({ _tag: "givenUp" })
        const again = Make.op({ index: 1, nonceKey: 1n, userOpHash: Make.word(1) })
        expect(yield* journal.renew(Make.lane, [again])).toEqual([null])
        const given = ops.map(({ opId }) => ({ opId, userOpHash: Make.word(1), signed: Hex.unsafe("0x51") }))
        expect(yield* journal.handOver(Make.lane, { node: Make.node(), since: 1n, ops: given })).toEqual([])
        expect(yield* acceptOp("r1", 2)).toEqual({ _tag: "over" })
        expect((yield* journal.request("r1"))?.txHashes).toEqual([])
      })
    )

    fact(
      "an unsigned direct transaction is refused once its request is cancelled",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* accept(journal, Make.acceptance("d1", [Make.direct("d1")]))
        const ops = yield* journal.ready(Make.lane, 9)
        expect(yield* journal.cancel("d1", cancellation)).toBe("final")
        expect(yield* journal.record(Make.recording(0n, ops))).toMatchObject({ _tag: "givenUp" })
      })
    )

    fact(
      "a request with a signed element abandons the others and opens none",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        yield* acceptOp("r1", 2)
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        expect([yield* stateOf(1), yield* stateOf(2)]).toEqual(["sent", "abandoned"])
        expect(yield* acceptOp("r1", 3)).toEqual({ _tag: "over" })
        expect(yield* stateOf(3)).toBeUndefined()
        expect((yield* journal.request("r1"))?.outcome).toBeNull()
      })
    )

    fact(
      "an op whose landing in a foreign transaction vanished is kept: its bytes are public",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        const found = [Make.landed(Make.word(1), 0n)]
        yield* journal.recordInclusions(Make.lane.signer, Make.chainId, found, Make.node())
        yield* journal.revertInclusions(Make.lane.signer, Make.chainId, [Make.word(1)])
        expect(yield* journal.cancel("r1", expiry)).toBe("kept")
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        expect(yield* stateOf(1)).toBe("accepted")
        const again = Make.op({ index: 1, nonceKey: 1n, userOpHash: Make.word(0xa6) })
        expect(yield* journal.renew(Make.lane, [again])).not.toEqual([null])
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        expect(yield* stateOf(0xa6)).toBe("accepted")
        expect((yield* journal.request("r1"))?.outcome).toBeNull()
      })
    )

    fact(
      "a signed direct transaction is kept, also when its nonce was lost",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* accept(journal, Make.acceptance("d1", [Make.direct("d1")]))
        yield* record(journal, "d1", [0])
        expect(yield* journal.cancel("d1", expiry)).toBe("kept")
        expect(yield* journal.request("d1")).toMatchObject({ outcome: null, cancelled: null })
        yield* journal.recordExternalUse(Make.lane, 0n, [])
        expect(yield* journal.cancel("d1", cancellation)).toBe("kept")
        expect(yield* journal.request("d1")).toMatchObject({ outcome: null, cancelled: "request_cancelled" })
      })
    )

    for (const [what, end] of [
      [
        "reverted",
        (journal: Journals.Methods) => journal.settle(Make.mined(0n, { success: false }), [], true)
      ],
      ["lost its nonce", (journal: Journals.Methods) => journal.recordExternalUse(Make.lane, 0n, [])]
    ] as const)
      fact(
        `an op whose transaction ${what} keeps its own nonce, and goes again under it`,
        Effect.gen(function* () {
          const journal = yield* Journals.all
          yield* signOps("r1", [1])
          yield* end(journal)
          expect(yield* stateOf(1)).toBe("accepted")
          expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
          expect(yield* stateOf(1)).toBe("accepted")
          expect(yield* record(journal, "r1", [1])).toEqual({ _tag: "recorded" })
        })
      )
  })
}
