import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const refused = (effect: Effect.Effect<unknown, JournalError>) =>
  Effect.map(Effect.flip(effect), (error) => expect(error._tag).toBe("JournalError"))

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, Journals.Ports>) =>
    it.effect(text, () => Effect.provide(body, layer))
  const find = (n: number, account = Make.alice) =>
    Effect.flatMap(Journals.all, (journal) => journal.findOp(account, Make.chainId, Make.word(n)))

  describe(`ops in ${name}`, () => {
    fact(
      "an op is found by its account only, on its chain only",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* journal.acceptOps(Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
        expect(yield* find(1)).toMatchObject({ requestId: "r1" })
        expect(yield* find(1, Make.bob)).toBeNull()
        expect(yield* find(2)).toBeNull()
        expect(yield* journal.findOp(Make.alice, 1n, Make.word(1))).toBeNull()
      })
    )

    fact(
      "those of some elements of a request are told without the others, however many they are",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const indexes = Array.from({ length: 600 }, (_, index) => index)
        yield* journal.acceptOps(
          Make.acceptance(
            "r1",
            indexes.map((index) =>
              Make.op({ index, nonceKey: BigInt(index), userOpHash: Make.word(index + 1) })
            )
          )
        )
        const told = (elements?: ReadonlyArray<number>) =>
          Effect.map(journal.ofRequest("r1", elements), ({ ops }) => ops.map(({ index }) => index))
        expect(yield* told([599, 7, 300, 9_999])).toHaveLength(3)
        expect(new Set(yield* told(indexes.slice(1)))).toEqual(new Set(indexes.slice(1)))
        expect(yield* told([])).toEqual([])
        expect(yield* told()).toEqual(indexes)
      })
    )

    fact(
      "hashes are noted for accepted ops only, and all or none of a call",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ops = [0, 1].map((index) => Make.op({ index, nonceKey: BigInt(index) }))
        yield* journal.acceptOps(Make.acceptance("r1", ops))
        yield* journal.abandon("r1", [1])
        for (const wrong of [1, 2])
          yield* refused(
            journal.identify("r1", [
              { index: 0, userOpHash: Make.word(10) },
              { index: wrong, userOpHash: Make.word(11) }
            ])
          )
        yield* refused(journal.identify("r2", [{ index: 0, userOpHash: Make.word(10) }]))
        expect(yield* find(10)).toBeNull()
        yield* journal.identify("r1", [{ index: 0, userOpHash: Make.word(10) }])
        yield* journal.allocate(Make.allocation("r1", { ops: [0] }))
        yield* journal.recordSigned(Make.signed(0n))
        yield* journal.identify("r1", [{ index: 0, userOpHash: Make.word(10) }])
        yield* refused(journal.identify("r1", [{ index: 0, userOpHash: Make.word(12) }]))
      })
    )

    fact(
      "the latest op is the one that was accepted last, in whatever order the hashes were noted",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ops = [0, 1].map((index) => Make.op({ index, nonceKey: BigInt(index) }))
        yield* journal.acceptOps(Make.acceptance("r1", ops))
        for (const index of [1, 0]) {
          yield* journal.identify("r1", [{ index, userOpHash: Make.word(10) }])
          yield* journal.abandon("r1", [index])
        }
        expect(yield* find(10)).toMatchObject({ index: 1, state: "abandoned" })
      })
    )

    fact(
      "an op in a signed transaction cannot be given up, nor anything together with it",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ops = [0, 1].map((index) =>
          Make.op({ index, nonceKey: BigInt(index), userOpHash: Make.word(index) })
        )
        yield* journal.acceptOps(Make.acceptance("r1", ops))
        yield* journal.allocate(Make.allocation("r1", { ops: [0] }))
        yield* journal.recordSigned(Make.signed(0n))
        yield* refused(journal.abandon("r1", [1, 0]))
        expect(yield* find(1)).toMatchObject({ state: "accepted" })
        expect(yield* find(0)).toMatchObject({ state: "sent" })
        yield* journal.settle(Make.mined(0n), [], false)
        yield* refused(journal.abandon("r1", [1, 0]))
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(0), 0n)], false)
        yield* refused(journal.abandon("r1", [1, 0]))
        expect(yield* find(1)).toMatchObject({ state: "accepted" })
      })
    )
  })
}
