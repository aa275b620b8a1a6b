import { describe, expect } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { accept, acceptOp, factOf, record, refused, signOps } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const drop = { code: "request_dropped", outcome: "dropped", onlyUnsigned: false } as const
const cancellation = { code: "request_cancelled", outcome: "cancelled", onlyUnsigned: false } as const

const transaction = (nonce: bigint, requestId = "d1") => ({
  ...Make.lane,
  nonce,
  requestId,
  access: Make.access(),
  transaction: { txHash: Make.word(0xf0n + nonce), maxFeePerGas: 7n, maxPriorityFeePerGas: 3n }
})

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`a journal older than its chain in ${name}`, () => {
    fact(
      "nonces are known up to the highest signed or explained nonce",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        expect(yield* journal.knownTo(Make.lane)).toBeNull()
        yield* acceptOp("r1", 1)
        yield* journal.explain(Make.lane, 9n)
        expect(yield* journal.knownTo(Make.lane)).toBe(9n)
        yield* journal.explain(Make.lane, 4n)
        expect(yield* journal.knownTo(Make.lane)).toBe(9n)
        yield* record(journal, "r1", [1], { chainNonce: 20n })
        expect(yield* journal.knownTo(Make.lane)).toBe(21n)
        expect(yield* journal.knownTo({ ...Make.lane, chainId: 1n })).toBeNull()
      })
    )

    fact(
      "nonces that must be read stay unknown, whatever is signed above them, until they are explained",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const signAt = (requestId: string, hash: number, nonce: bigint) => signOps(requestId, [hash], nonce)
        yield* signAt("r1", 1, 4n)
        expect(yield* journal.knownTo(Make.lane)).toBe(5n)
        // It was open when something that the journal does not know of used 5 and 6.
        yield* acceptOp("r2", 2)
        yield* signAt("r3", 3, 7n)
        expect(yield* journal.knownTo(Make.lane)).toBe(5n)
        yield* signAt("r4", 4, 9n)
        yield* journal.keepUnread(Make.lane)
        expect(yield* journal.knownTo(Make.lane)).toBe(5n)
        yield* journal.explain(Make.lane, 8n)
        expect(yield* journal.knownTo(Make.lane)).toBe(10n)
        yield* journal.keepUnread(Make.lane)
        yield* signAt("r5", 5, 10n)
        expect(yield* journal.knownTo(Make.lane)).toBe(10n)
        yield* journal.explain(Make.lane, 6n)
        expect(yield* journal.knownTo(Make.lane)).toBe(11n)
      })
    )

    fact(
      "a lane unknown to the journal stays unknown when its first nonce is signed together with other work",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* acceptOp("r2", 2)
        yield* record(journal, "r2", [2], { chainNonce: 3n })
        expect(yield* journal.knownTo(Make.lane)).toBeNull()
        yield* journal.explain(Make.lane, 4n)
        expect(yield* journal.knownTo(Make.lane)).toBe(4n)
      })
    )

    fact(
      "a held request has nothing ready, ignores its caller's cancel and does not expire, until it is released",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* acceptOp("r2", 2)
        const workOf = Effect.map(journal.ready(Make.lane, 9), (ops) => ops.map(({ requestId }) => requestId))
        const acceptedAt = yield* Clock.currentTimeMillis
        expect(yield* journal.openIn(Make.lane)).toEqual([
          { requestId: "r1", acceptedAt },
          { requestId: "r2", acceptedAt }
        ])
        expect(yield* journal.hold(Make.lane, "r1", "why")).toBe(true)
        expect(yield* workOf).toEqual(["r2"])
        expect(yield* journal.openIn(Make.lane)).toEqual([{ requestId: "r2", acceptedAt }])
        expect(yield* journal.request("r1")).toMatchObject({ held: "why", outcome: null })
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        expect(
          yield* journal.cancel("r1", { ...cancellation, code: "request_expired", onlyUnsigned: true })
        ).toBe("kept")
        expect(yield* journal.request("r1")).toMatchObject({ cancelled: null, outcome: null })
        expect(yield* journal.unhold("r1")).toBe(true)
        expect(yield* workOf).toEqual(["r1", "r2"])
        expect(yield* journal.openIn(Make.lane)).toContainEqual({ requestId: "r1", acceptedAt })
        expect(yield* journal.request("r1")).toMatchObject({ held: null })
        // The operator's release stays in effect.
        expect(yield* journal.hold(Make.lane, "r1", "again")).toBe(false)
        expect(yield* journal.unhold("r1")).toBe(false)
      })
    )

    fact(
      "only a held request is dropped: it is final, or kept with its signed part",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        expect(yield* journal.cancel("r1", drop)).toBe("kept")
        expect(yield* journal.request("r1")).toMatchObject({ cancelled: null, outcome: null })
        yield* journal.hold(Make.lane, "r1", "why")
        expect(yield* journal.cancel("r1", drop)).toBe("final")
        expect(yield* journal.request("r1")).toMatchObject({
          cancelled: "request_dropped",
          held: null,
          outcome: "dropped"
        })
        yield* signOps("r2", [2])
        yield* journal.hold(Make.lane, "r2", "why")
        expect(yield* journal.cancel("r2", drop)).toBe("kept")
        expect(yield* journal.request("r2")).toMatchObject({
          cancelled: "request_dropped",
          held: null,
          outcome: null
        })
      })
    )

    fact(
      "an accepted op signed under another hash gets that hash and keeps its nonce",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* acceptOp("r2", 2)
        yield* journal.identifyAnew(Make.lane, "r1", [{ index: 1, userOpHash: Make.word(77) }])
        const hashes = [Make.word(1), Make.word(2), Make.word(77)]
        expect(yield* journal.known(Make.chainId, Make.entryPoint, hashes)).toEqual(
          new Set([Make.word(2), Make.word(77)])
        )
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        expect((yield* journal.ofRequest("r1")).ops).toMatchObject([
          { state: "accepted", userOpHash: Make.word(77) }
        ])
      })
    )

    fact(
      "a found transaction belongs to the request, followed and settled as if signed here",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const requestId of ["d1", "d2"])
          yield* accept(journal, Make.acceptance(requestId, [Make.direct(requestId)]))
        yield* journal.adopt(transaction(5n))
        yield* journal.adopt(transaction(5n))
        const { txHash } = transaction(5n).transaction
        expect(yield* journal.openOf(Make.lane)).toMatchObject([
          { nonce: 5n, state: "signed", direct: "d1", versions: [{ txHash, raw: "0x" }] }
        ])
        yield* refused(journal.adopt(transaction(5n, "d2")))
        yield* refused(journal.adopt(transaction(6n)))
        yield* journal.settle(Make.mined(5n, { txHash }), [], true)
        expect((yield* journal.request("d1"))?.txHashes).toEqual([txHash])
        expect((yield* journal.events("d1", 0, 10)).map(({ kind }) => kind)).toEqual([
          "accepted",
          "signed",
          "submitted",
          "included",
          "settled"
        ])
      })
    )
  })
}
