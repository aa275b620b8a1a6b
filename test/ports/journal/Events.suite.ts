import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { acceptOp, answer, factOf, handOver, readyOf, signOps } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const prices = { maxFeePerGas: "30000000000", maxPriorityFeePerGas: "1000000000" }

/** Block data of every event here. */
const at = (confirmations: number) => ({ blockNumber: "7", confirmations })

const toldOf = (requestId: string) =>
  Effect.flatMap(Journals.all, (journal) =>
    Effect.map(journal.events(requestId, 0, 100), (events) =>
      events.map(({ data, kind, sequence }) => [sequence, kind, data])
    )
  )

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`events of requests in ${name}`, () => {
    fact(
      "follow a request in order, each with its own elements of a shared transaction",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* acceptOp("r2", 3)
        const shared = [
          { requestId: "r2", index: 3 },
          { requestId: "r1", index: 2 },
          { requestId: "r1", index: 1 }
        ]
        yield* journal.record(Make.recording(0n, yield* readyOf(journal, Make.lane, shared)))
        const taken = [{ nonce: 0n, txHash: Make.signed(0n).txHash }]
        yield* journal.recordSubmitted(Make.lane, taken)
        yield* journal.recordSubmitted(Make.lane, taken)
        const second = Make.word(0x2000)
        yield* journal.replace(Make.signed(0n, { txHash: second }))
        const landed = [1, 2, 3].map((n) => ({ ...Make.landed(Make.word(n), 0n), txHash: second }))
        yield* journal.settle(Make.mined(0n, { txHash: second }), landed, false)
        yield* answer(journal, "r1", "{}", { httpStatus: 200 })
        yield* journal.finalise(Make.lane, 0n, Make.settledDepth)
        const txHash = Make.signed(0n).txHash
        const story = (elements: ReadonlyArray<number>) => [
          [2, "signed", { txHash, ...prices, elements }],
          [3, "submitted", { txHash, elements }],
          [4, "replaced", { txHash: second, replaces: txHash, ...prices, elements }],
          [5, "included", { txHash: second, ...at(1), success: true, elements }]
        ]
        const settled = { txHash: second, ...at(Make.settledDepth) }
        expect(yield* toldOf("r1")).toEqual([
          [1, "accepted", {}],
          ...story([1, 2]),
          [6, "final", { httpStatus: 200 }],
          [7, "settled", { ...settled, elements: [1, 2] }]
        ])
        expect(yield* toldOf("r2")).toEqual([
          [1, "accepted", {}],
          ...story([3]),
          [6, "settled", { ...settled, elements: [3] }]
        ])
      })
    )

    fact(
      "number the events of concurrent calls about one request without a gap",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ns = Array.from({ length: 12 }, (_, n) => n + 1)
        for (const n of ns) yield* acceptOp("r1", n)
        yield* Effect.forEach(ns, (n) => handOver(journal, "r1", [n]), {
          concurrency: "unbounded"
        })
        const told = yield* toldOf("r1")
        expect(told.map(([sequence]) => sequence)).toEqual([1, ...ns.map((n) => n + 1)])
        const elements = told.slice(1).map(([, , data]) => data)
        expect(new Set(elements.map((data) => JSON.stringify(data)))).toEqual(
          new Set(ns.map((n) => JSON.stringify({ elements: [n] })))
        )
      })
    )

    fact(
      "are read from any event on, in pages, and go with their request",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        yield* answer(journal, "r1")
        const page = yield* journal.events("r1", 1, 2)
        expect(page.map(({ sequence }) => sequence)).toEqual([2, 3])
        expect(yield* journal.events("r1", 6, 2)).toEqual([])
        expect(yield* journal.newestEvents(["r1", "none"])).toEqual(new Map([["r1", 6]]))
        yield* journal.forget(Number.MAX_SAFE_INTEGER)
        expect(yield* journal.events("r1", 0, 100)).toEqual([])
        expect(yield* journal.newestEvents(["r1"])).toEqual(new Map([["r1", 0]]))
      })
    )
  })
}
