import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { accept, giveUp, record, refused } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

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
        yield* accept(journal, Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
        expect(yield* find(1)).toMatchObject({ requestId: "r1" })
        expect(yield* find(1, Make.bob)).toBeNull()
        expect(yield* find(2)).toBeNull()
        expect(yield* journal.findOp(Make.alice, 1n, Make.word(1))).toBeNull()
      })
    )

    fact(
      "selected ops of a request are read without the others, however many they are",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const indexes = Array.from({ length: 600 }, (_, index) => index)
        yield* accept(
          journal,
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
      "an op without a hash gets the signed one",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* accept(journal, Make.acceptance("r1", [Make.op()]))
        const [op] = yield* journal.ready(Make.lane, 1)
        if (op === undefined) return expect.fail("it is ready")
        yield* refused(journal.record(Make.recording(0n, [op])))
        const signed = { opId: op.opId, userOpHash: Make.word(10) }
        expect(yield* journal.record(Make.recording(0n, [signed]))).toEqual({ _tag: "recorded" })
        expect(yield* find(10)).toMatchObject({ index: 0, state: "sent" })
      })
    )

    fact(
      "the latest op of a hash is the last accepted one",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const index of [0, 1]) {
          const op = Make.op({ index, nonceKey: BigInt(index), userOpHash: Make.word(10) })
          yield* accept(journal, Make.acceptance(`r${index}`, [op]))
          yield* giveUp(journal, `r${index}`, [index])
        }
        expect(yield* find(10)).toMatchObject({ requestId: "r1", index: 1, state: "abandoned" })
      })
    )

    fact(
      "an op in a signed transaction cannot be abandoned, ready ops of its request can",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ops = [0, 1, 2].map((index) =>
          Make.op({ index, nonceKey: BigInt(index), userOpHash: Make.word(index) })
        )
        yield* accept(journal, Make.acceptance("r1", ops))
        yield* record(journal, "r1", [0])
        yield* giveUp(journal, "r1", [1, 0])
        expect(yield* find(1)).toMatchObject({ state: "abandoned" })
        expect(yield* find(0)).toMatchObject({ state: "sent" })
        yield* journal.settle(Make.mined(0n), [], false)
        yield* giveUp(journal, "r1", [0])
        expect(yield* find(0)).toMatchObject({ state: "sent" })
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(0), 0n)], false)
        yield* giveUp(journal, "r1", [0])
        expect(yield* find(0)).toMatchObject({ state: "settled" })
        expect(yield* find(2)).toMatchObject({ state: "accepted" })
      })
    )
  })
}
