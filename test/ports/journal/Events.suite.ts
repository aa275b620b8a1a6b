import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { acceptOp, factOf, refused, signOps } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const prices = { maxFeePerGas: "30000000000", maxPriorityFeePerGas: "1000000000" }

/** What an event says of the block of all transactions here. */
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
      "tell the way of a request in order, each with its own elements of a shared transaction",
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
        yield* journal.allocate({ ...Make.allocation("", {}), ops: shared })
        yield* journal.recordSigned(Make.signed(0n))
        const taken = [{ nonce: 0n, txHash: Make.signed(0n).txHash }]
        yield* journal.recordSubmitted(Make.lane, taken)
        yield* journal.recordSubmitted(Make.lane, taken)
        const second = Make.word(0x2000)
        yield* journal.recordSigned(Make.signed(0n, { txHash: second }))
        const landed = [1, 2, 3].map((n) => ({ ...Make.landed(Make.word(n), 0n), txHash: second }))
        yield* journal.settle(Make.mined(0n, { txHash: second }), landed, false)
        yield* journal.finish("r1", "{}", { httpStatus: 200 })
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
      "a reorganisation is told, and what comes after it",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        const landed = [Make.landed(Make.word(1), 0n)]
        yield* journal.settle(Make.mined(0n), landed, false)
        yield* journal.finish("r1", "{}", {})
        yield* journal.unsettle(Make.lane, 0n)
        yield* journal.unsettle(Make.lane, 0n)
        yield* journal.settle(Make.mined(0n), landed, false)
        // In another block: taken back and told anew.
        yield* journal.settle(Make.mined(0n, { blockHash: Make.word(0xb2), blockNumber: 8n }), landed, true)
        yield* journal.finish("r1", "{}", {})
        expect((yield* toldOf("r1")).map(([, kind]) => kind)).toEqual([
          "accepted",
          "signed",
          "submitted",
          "included",
          "final",
          "reopened",
          "included",
          "reopened",
          "included",
          "settled",
          "final"
        ])
      })
    )

    fact(
      "a call that fails, or that tells what is known, tells nothing",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        const before = yield* toldOf("r1")
        yield* refused(journal.finalise(Make.lane, 0n, Make.settledDepth))
        yield* refused(journal.settle(Make.mined(0n, { txHash: Make.word(9) }), [], false))
        yield* journal.recordSigned(Make.signed(0n))
        yield* journal.finish("r1", "{}", {})
        yield* journal.cancel("r1", { code: "request_cancelled", outcome: "", onlyUnsigned: false })
        yield* acceptOp("r1", 2)
        yield* journal
          .accept({
            ...Make.acceptance("r3", [Make.op({ nonceKey: 1n })]),
            funds: []
          })
          .pipe(Effect.ignore)
        expect(yield* toldOf("r1")).toEqual(before)
        expect(yield* toldOf("r3")).toEqual([])
      })
    )

    fact(
      "of a cancelled request, and of one whose time was over, the last event says so",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r2", 2)
        yield* journal.cancel("r1", { code: "request_cancelled", outcome: "{}", onlyUnsigned: false })
        yield* journal.cancel("r2", { code: "request_expired", outcome: "{}", onlyUnsigned: true })
        yield* journal.cancel("r2", { code: "request_cancelled", outcome: "{}", onlyUnsigned: true })
        expect(yield* toldOf("r1")).toEqual([
          [1, "accepted", {}],
          [2, "cancelled", {}]
        ])
        expect(yield* toldOf("r2")).toEqual([
          [1, "accepted", {}],
          [2, "expired", {}]
        ])
      })
    )

    fact(
      "of ops at somebody else's bundler each landing is told, and when it is for good",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const { signer } = Make.lane
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* journal.submitRemotely(Make.handing("r1", [1, 2]))
        yield* journal.submitRemotely(Make.handing("r1", [2]))
        yield* journal.recordTaken(signer, Make.chainId, [Make.word(1)])
        yield* journal.recordTaken(signer, Make.chainId, [Make.word(1)])
        const [first, second] = [Make.landed(Make.word(1), 1n), Make.landed(Make.word(2), 2n)]
        yield* journal.recordInclusions(signer, Make.chainId, [first, second], Make.node())
        yield* journal.recordInclusions(signer, Make.chainId, [first], Make.node())
        yield* journal.revertInclusions(signer, Make.chainId, [Make.word(2)])
        yield* journal.finaliseInclusions(signer, Make.chainId, [Make.deep(Make.word(1))])
        yield* journal.finaliseInclusions(signer, Make.chainId, [Make.deep(Make.word(1))])
        expect(yield* toldOf("r1")).toEqual([
          [1, "accepted", {}],
          [2, "signed", { elements: [1, 2] }],
          [3, "submitted", { elements: [1] }],
          [4, "submitted", { txHash: second.txHash, elements: [2] }],
          [5, "included", { txHash: first.txHash, ...at(1), success: true, elements: [1] }],
          [6, "included", { txHash: second.txHash, ...at(1), success: true, elements: [2] }],
          [7, "reopened", { txHash: second.txHash, elements: [2] }],
          [8, "settled", { txHash: first.txHash, ...at(Make.settledDepth), elements: [1] }]
        ])
      })
    )

    fact(
      "of a nonce that somebody else's transaction used, and of ops that it carries, the landing is told for good",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const { lane } = Make
        yield* acceptOp("r1", 1)
        yield* acceptOp("r2", 2)
        yield* journal.allocate({
          ...Make.allocation("", {}),
          ops: [
            { requestId: "r1", index: 1 },
            { requestId: "r2", index: 2 }
          ]
        })
        yield* journal.recordSigned(Make.signed(0n))
        const landed = Make.landed(Make.word(1), 9n, { confirmations: Make.settledDepth })
        yield* journal.recordExternalUse(lane, 0n, [landed])
        yield* journal.recordExternalUse(lane, 0n, [landed])
        const data = { txHash: landed.txHash, ...at(Make.settledDepth), elements: [1] }
        expect((yield* toldOf("r1")).slice(2)).toEqual([
          [3, "submitted", { txHash: landed.txHash, elements: [1] }],
          [4, "included", { ...data, success: true }],
          [5, "settled", data]
        ])
        expect((yield* toldOf("r2")).slice(2)).toEqual([])
        expect((yield* journal.ofRequest("r1")).ops.map(({ state }) => state)).toEqual(["settled"])
        expect((yield* journal.ofRequest("r2")).ops.map(({ state }) => state)).toEqual(["accepted"])
      })
    )

    fact(
      "of a transaction of which an op has landed in another one, both are told, and undone together",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const { lane } = Make
        yield* acceptOp("r1", 1)
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* journal.recordSigned(Make.signed(0n))
        const { txHash } = Make.signed(0n)
        const landed = Make.landed(Make.word(1), 9n)
        const elements = [1]
        yield* journal.settle(Make.mined(0n, { success: false }), [landed], false)
        yield* journal.settle(Make.mined(0n, { success: false }), [landed], false)
        yield* journal.unsettle(lane, 0n)
        yield* journal.settle(Make.mined(0n, { success: false }), [landed], false)
        yield* journal.finalise(lane, 0n, Make.settledDepth)
        const included = [
          ["included", { txHash, ...at(1), success: false, elements }],
          ["included", { txHash: landed.txHash, ...at(1), success: true, elements }]
        ]
        expect((yield* toldOf("r1")).slice(3).map(([, ...told]) => told)).toEqual([
          ...included,
          ["reopened", { txHash, elements }],
          ["reopened", { txHash: landed.txHash, elements }],
          ...included,
          ["settled", { txHash, ...at(Make.settledDepth), elements }],
          ["settled", { txHash: landed.txHash, elements }]
        ])
      })
    )

    fact(
      "of many calls at once about one request every event has a number of its own, without a gap",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ns = Array.from({ length: 12 }, (_, n) => n + 1)
        for (const n of ns) yield* acceptOp("r1", n)
        yield* Effect.forEach(ns, (n) => journal.submitRemotely(Make.handing("r1", [n])), {
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
      "can be read from any of them on, some at a time, and go with their request",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        yield* journal.finish("r1", "{}", {})
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
