import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import {
  acceptOp,
  answer,
  factOf,
  giveUp,
  handOver,
  openIn,
  refused,
  signOps,
  stateOf
} from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const cancellation = { code: "request_cancelled", outcome: "{}", onlyUnsigned: false } as const

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)
  const opOf = (n: number) =>
    Effect.flatMap(Journals.all, (journal) => journal.findOp(Make.alice, Make.chainId, Make.word(n)))
  const land = (...ns: ReadonlyArray<number>) =>
    Effect.flatMap(Journals.all, (journal) =>
      journal.recordInclusions(
        Make.lane.signer,
        Make.chainId,
        ns.map((n) => Make.landed(Make.word(n), 0n)),
        Make.node()
      )
    )

  describe(`ops at remote bundlers in ${name}`, () => {
    /** Accepts ops without a transaction, and returns their rows. */
    const ready = (...hashes: ReadonlyArray<bigint | null>) =>
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ops = hashes.map((hash, index) =>
          Make.op({
            index,
            nonceKey: BigInt(index),
            userOpHash: hash === null ? null : Make.word(hash)
          })
        )
        yield* journal.accept([Make.acceptance("r2", ops)])
        return (yield* journal.ready(Make.lane, 9)).map(({ opId }) => opId)
      })
    const handover = (...ops: ReadonlyArray<readonly [number | undefined, bigint]>) => ({
      node: Make.node(),
      since: 7n,
      ops: ops.map(([opId = 0, hash]) => ({
        opId,
        userOpHash: Make.word(hash),
        signed: Hex.unsafe(`0x${hash.toString(16).padStart(4, "0")}`)
      }))
    })

    fact(
      "ready ops are handed over once, exposed, with the signed hashes; others are not",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const [one, two, three] = yield* ready(1n, null, 3n)
        const handed = handover([one, 1n], [two, 2n], [three, 9n], [99, 4n])
        expect(yield* journal.handOver(Make.lane, handed)).toEqual([one, two])
        expect(yield* journal.handOver(Make.lane, handed)).toEqual([one, two])
        expect((yield* journal.remoteSubmissions).map((it) => [it.index, it.userOpHash, it.signed])).toEqual([
          [0, Make.word(1), "0x0001"],
          [1, Make.word(2), "0x0002"]
        ])
        expect((yield* journal.ready(Make.lane, 9)).map(({ opId }) => opId)).toEqual([three])
        expect((yield* journal.events("r2", 0, 9)).map(({ kind }) => kind)).toEqual(["accepted", "signed"])
        expect(yield* journal.cancel("r2", { ...cancellation, onlyUnsigned: true })).toBe("kept")
        const other = { ...Make.lane, signer: Make.address(0x99) }
        expect(yield* journal.handOver(other, handover([three, 3n]))).toEqual([])
        yield* refused(journal.handOver(Make.lane, { ...handover([three, 3n]), since: 2n ** 64n }))
      })
    )

    fact(
      "an op that can no longer land is ready and unexposed when taken back, or over where its element has failed",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const [one, two, three] = yield* ready(1n, 2n, 3n)
        yield* journal.handOver(Make.lane, handover([one, 1n], [two, 2n], [three, 3n]))
        yield* journal.fail(Make.lane, [{ requestId: "r2", failed: [Make.failed(1)] }])
        yield* journal.takeBack(Make.lane, [1n, 2n, 9n].map(Make.word), true)
        expect(yield* journal.ready(Make.lane, 9)).toMatchObject([
          { opId: one, exposed: false, prepared: null, userOpHash: Make.word(1) }
        ])
        expect(yield* stateOf(2)).toBe("abandoned")
        expect((yield* journal.remoteSubmissions).map(({ index }) => index)).toEqual([2])
        expect(yield* journal.handOver(Make.lane, handover([one, 1n]))).toEqual([one])
      })
    )

    fact(
      "an op that may still land stays exposed when taken back, and its bytes are a version of the next ones",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const [one] = yield* ready(1n)
        yield* journal.handOver(Make.lane, handover([one, 1n]))
        yield* journal.takeBack(Make.lane, [Make.word(1)], false)
        expect(yield* journal.ready(Make.lane, 9)).toMatchObject([
          { opId: one, exposed: true, prepared: null }
        ])
        const [again] = yield* journal.renew(Make.lane, [
          { ...Make.op({ index: 0, nonceKey: 0n, userOpHash: Make.word(5) }), requestId: "r2" }
        ])
        expect(yield* journal.versions([again ?? 0])).toEqual([{ opId: again, userOpHash: Make.word(1) }])
        expect(yield* journal.handOver(Make.lane, handover([again ?? 0, 5n]))).toEqual([again])
        yield* journal.takeBack(Make.lane, [Make.word(1)], true)
        expect(yield* stateOf(5)).toBe("sent")
        expect(yield* journal.ready(Make.lane, 9)).toEqual([])
      })
    )

    fact(
      "a handed-over op is in no stored bytes",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        const ops = yield* journal.ready(Make.lane, 9)
        expect(yield* handOver(journal, "r1", [1])).toBe(1)
        expect(yield* journal.record(Make.recording(0n, ops))).toMatchObject({ _tag: "givenUp" })
        yield* journal.takeBack(Make.lane, [Make.word(1)], false)
        expect(yield* journal.record(Make.recording(0n, ops))).toEqual({ _tag: "recorded" })
        expect(yield* opOf(1)).toMatchObject({ txHash: Make.signed(0n).txHash })
      })
    )

    fact(
      "ops landed by other parties are settled, wherever they were; others are ignored",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        yield* acceptOp("r2", 2)
        yield* acceptOp("r3", 3)
        yield* acceptOp("r4", 4)
        yield* handOver(journal, "r3", [3])
        yield* giveUp(journal, "r4", [4])
        const elsewhere = Make.word(0xe15e)
        const revertData = Hex.unsafe("0xdead")
        const outcomes = [1, 2, 3, 4, 99].map((n) =>
          Make.landed(Make.word(n), 0n, { success: false, txHash: elsewhere, revertData })
        )
        for (const [authority, chainId] of [
          [Make.address(0x99), Make.chainId],
          [Make.lane.signer, 1n]
        ] as const)
          expect(yield* journal.recordInclusions(authority, chainId, outcomes, Make.node())).toEqual([])
        const tell = journal.recordInclusions(Make.lane.signer, Make.chainId, outcomes, Make.node())
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
        yield* giveUp(journal, "r2", [2])
        expect(yield* stateOf(2)).toBe("settled")
      })
    )

    fact(
      "an op landed by a foreign transaction keeps that outcome when our transaction with it fails permanently",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1, 2])
        yield* land(1)
        yield* journal.settle(Make.mined(0n, { success: false }), [], true)
        expect(yield* opOf(1)).toMatchObject({ state: "settled", success: true })
        expect(yield* stateOf(2)).toBe("accepted")
      })
    )

    fact(
      "ops at a remote bundler are read with all data for another offer, until taken back",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        for (const n of [2, 3]) yield* acceptOp("r2", n)
        yield* handOver(journal, "r2", [3, 2])
        const told = (n: number) => ({
          requestId: "r2",
          index: n,
          accountId: Make.alice,
          space: Make.op().space,
          userOpHash: Make.word(n),
          node: Make.node(),
          since: 7n,
          signed: `0x510${n}`,
          isRefused: false,
          includedIn: null,
          landedAs: Make.word(n)
        })
        expect(yield* journal.remoteSubmissions).toEqual([told(2), told(3)])
        yield* journal.takeBack(Make.lane, [Make.word(2)], false)
        expect(yield* journal.remoteSubmissions).toEqual([told(3)])
        yield* refused(handOver(journal, "r2", [2], { since: 2n ** 64n }))
        yield* handOver(journal, "r2", [2], { since: 2n ** 64n - 1n })
        expect((yield* journal.remoteSubmissions).map(({ since }) => since)).toEqual([2n ** 64n - 1n, 7n])
      })
    )

    fact(
      "a vanished landing returns the op to its other holder and reopens its request",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* handOver(journal, "r1", [1])
        yield* land(1)
        yield* answer(journal, "r1")
        const includedIn = (yield* journal.remoteSubmissions).map((it) => it.includedIn)
        expect(includedIn).toEqual([Make.landed(Make.word(1), 0n).txHash])
        const vanish = journal.revertInclusions(Make.lane.signer, Make.chainId, [Make.word(1)])
        expect(yield* journal.revertInclusions(Make.address(0x99), Make.chainId, [Make.word(1)])).toEqual([])
        expect(yield* journal.revertInclusions(Make.lane.signer, 1n, [Make.word(1)])).toEqual([])
        expect(yield* vanish).toEqual(["r1"])
        expect(yield* opOf(1)).toMatchObject({ state: "sent", txHash: null, success: null })
        expect(yield* openIn(journal)).toEqual(["r1"])
        expect(yield* vanish).toEqual(["r1"])
        expect((yield* journal.remoteSubmissions).map((it) => it.includedIn)).toEqual([null])
      })
    )

    fact(
      "a handed-over op that landed in another version is watched under that version's hash, while it stands",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* handOver(journal, "r1", [1])
        const found = [Make.landed(Make.word(1), 0n, { landedAs: Make.word(0xa5) })]
        yield* journal.recordInclusions(Make.lane.signer, Make.chainId, found, Make.node())
        const watched = Effect.map(journal.remoteSubmissions, (all) => all.map((it) => it.landedAs))
        expect(yield* watched).toEqual([Make.word(0xa5)])
        yield* journal.revertInclusions(Make.lane.signer, Make.chainId, [Make.word(1)])
        expect(yield* watched).toEqual([Make.word(1)])
        yield* land(1)
        expect(yield* watched).toEqual([Make.word(1)])
      })
    )

    fact(
      "an op whose element has failed is reported as refused",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const n of [1, 2]) yield* acceptOp("r1", n)
        yield* acceptOp("r2", 3)
        for (const [requestId, n] of [
          ["r1", 1],
          ["r1", 2],
          ["r2", 3]
        ] as const)
          yield* handOver(journal, requestId, [n])
        yield* journal.fail(Make.lane, [{ requestId: "r1", failed: [Make.failed(2), Make.failed(3)] }])
        expect((yield* journal.remoteSubmissions).map(({ index, isRefused }) => [index, isRefused])).toEqual([
          [1, false],
          [2, true],
          [3, false]
        ])
      })
    )

    fact(
      "an op landed by another party is watched at the node that showed it, under the landed hash",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const n of [1, 2]) yield* acceptOp("r1", n)
        const landedAs = Make.word(0xa5)
        const found = [
          Make.landed(Make.word(1), 0n, { landedAs, blockNumber: 9n }),
          Make.landed(Make.word(2), 1n)
        ]
        const tell = journal.recordInclusions(Make.lane.signer, Make.chainId, found, Make.node())
        yield* tell
        yield* tell
        expect(yield* journal.remoteSubmissions).toEqual(
          found.map(({ blockNumber, landedAs, txHash, userOpHash }, at) => ({
            requestId: "r1",
            index: at + 1,
            accountId: Make.alice,
            space: Make.op({ index: at + 1 }).space,
            userOpHash,
            node: Make.node(),
            since: blockNumber,
            signed: null,
            isRefused: false,
            includedIn: txHash,
            landedAs
          }))
        )
        yield* answer(journal, "r1")
        expect((yield* journal.busy).map(({ lane }) => lane)).toEqual([Make.lane])
        const deep = [1, 2].map((n) => Make.deep(Make.word(n)))
        yield* journal.finaliseInclusions(Make.lane.signer, Make.chainId, deep)
        expect(yield* journal.remoteSubmissions).toEqual([])
        expect(yield* journal.busy).toEqual([])
      })
    )

    fact(
      "an op landed by another party whose landing vanishes is accepted again, keeps its nonce, and is public",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const n of [1, 2]) yield* acceptOp("r1", n)
        yield* land(1)
        yield* giveUp(journal, "r1", [2])
        yield* answer(journal, "r1")
        const vanish = journal.revertInclusions(Make.lane.signer, Make.chainId, [Make.word(1)])
        expect(yield* vanish).toEqual(["r1"])
        expect(yield* opOf(1)).toMatchObject({ state: "accepted", txHash: null, success: null })
        expect(yield* openIn(journal)).toEqual(["r1"])
        expect(yield* journal.remoteSubmissions).toEqual([])
        expect(yield* vanish).toEqual([])
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        expect(yield* stateOf(1)).toBe("accepted")
        const signed = (yield* journal.request("r1"))?.signed
        expect(signed?.map(({ userOpHash }) => userOpHash)).toEqual([Make.word(1)])
        const again = Make.op({ index: 1, nonceKey: 1n, userOpHash: Make.word(0xa6) })
        expect(yield* journal.renew(Make.lane, [again])).not.toEqual([null])
        expect(yield* stateOf(1)).toBe("abandoned")
        // The previous version may still land under that nonce: with another nonce the element would be done twice.
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        expect(yield* stateOf(0xa6)).toBe("accepted")
        yield* land(0xa6)
        expect((yield* journal.remoteSubmissions).map(({ userOpHash }) => userOpHash)).toEqual([
          Make.word(0xa6)
        ])
        const told = (yield* journal.events("r1", 0, 20)).map(({ kind }) => kind)
        expect(told).toEqual([
          "accepted",
          "submitted",
          "included",
          "final",
          "reopened",
          "submitted",
          "included"
        ])
      })
    )

    fact(
      "an op of our unsettled transaction is followed with that transaction, wherever it landed",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        yield* land(1)
        expect(yield* journal.remoteSubmissions).toEqual([])
      })
    )
  })
}
