import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { acceptOp, factOf, giveUp, readyOf, record, refused, stateOf } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const recorded = { _tag: "recorded" }

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`nonces of the lane in ${name}`, () => {
    fact(
      "nonces count by number, not by text",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const nonce of [9n, 10n, 99n, 100n, 2n ** 53n, 2n ** 64n - 1n])
          expect(yield* journal.record(Make.recording(nonce, [], { chainNonce: nonce }))).toEqual(recorded)
        yield* refused(journal.nextNonce(Make.lane, 2n ** 64n - 1n))
        for (const [chainNonce, nonce, isGap] of [
          [9n, 11n, true],
          [10n, 11n, false],
          [99n, 101n, true],
          [0n, 0n, false]
        ] as const)
          expect(yield* journal.nextNonce(Make.lane, chainNonce)).toEqual({ nonce, isGap })
      })
    )

    fact(
      "lanes of other signers and chains count separately",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* journal.record(Make.recording(4n, [], { chainNonce: 4n }))
        const others = [
          { ...Make.lane, signer: Make.address(0x52) },
          { ...Make.lane, chainId: 1n }
        ]
        for (const lane of others) expect(yield* journal.nextNonce(lane, 4n)).toMatchObject({ nonce: 4n })
        expect(yield* journal.nextNonce(Make.lane, 4n)).toMatchObject({ nonce: 5n })
      })
    )

    fact(
      "of concurrent transactions for one nonce one is recorded, and the others get the next one: no gap",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const sign = (n: number): Effect.Effect<bigint, JournalError> =>
          Effect.gen(function* () {
            const { nonce } = yield* journal.nextNonce(Make.lane, 0n)
            const bytes = Make.recording(nonce, [], { txHash: Make.word(0x9000 + n) })
            const { _tag } = yield* journal.record(bytes)
            return _tag === "recorded" ? nonce : yield* sign(n)
          })
        const numbers = Array.from({ length: 20 }, (_, n) => n)
        const nonces = yield* Effect.forEach(numbers, sign, { concurrency: "unbounded" })
        expect([...nonces].sort((a, b) => Number(a - b))).toEqual(numbers.map(BigInt))
      })
    )
  })

  describe(`money of the lane in ${name}`, () => {
    const cost = 3n * Make.ether * 10n ** 6n
    const spend = (maxCost: bigint) =>
      Effect.flatMap(Journals.all, (journal) => record(journal, "", [], { maxCost, balance: 2n * cost }))

    fact(
      "signed transactions hold their cost until they are mined, and again when they vanish, to the wei",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        expect(yield* spend(cost)).toEqual(recorded)
        expect(yield* spend(cost + 1n)).toEqual({ _tag: "insufficientFunds", reserved: cost })
        expect(yield* spend(cost)).toEqual(recorded)
        expect(yield* spend(1n)).toEqual({ _tag: "insufficientFunds", reserved: 2n * cost })
        yield* journal.settle(Make.mined(0n), [], false)
        expect(yield* spend(cost + 1n)).toEqual({ _tag: "insufficientFunds", reserved: cost })
        yield* journal.unsettle(Make.lane, 0n)
        expect(yield* spend(1n)).toEqual({ _tag: "insufficientFunds", reserved: 2n * cost })
        yield* journal.settle(Make.mined(0n), [], true)
        yield* journal.recordExternalUse(Make.lane, 1n, [])
        expect(yield* spend(2n * cost)).toEqual(recorded)
      })
    )

    fact(
      "a replacement holds its possible extra cost, once",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* spend(cost)
        const replacement = Make.signed(0n, { txHash: Make.word(0x2000), addedCost: 7n })
        expect(yield* journal.replace(replacement)).toBe(true)
        expect(yield* journal.replace(replacement)).toBe(true)
        expect(yield* spend(cost)).toEqual({ _tag: "insufficientFunds", reserved: cost + 7n })
        expect(yield* spend(cost - 7n)).toEqual(recorded)
        yield* journal.settle(Make.mined(0n), [], true)
        yield* journal.settle(Make.mined(1n), [], true)
        expect(yield* spend(2n * cost)).toEqual(recorded)
        yield* refused(journal.replace(Make.signed(2n, { txHash: Make.word(0x2001), addedCost: -1n })))
      })
    )

    fact(
      "figures of more than 256 bits, or below zero, fail",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const over of [{ maxCost: -1n }, { balance: 2n ** 256n }, { maxFeePerGas: -1n }])
          yield* refused(journal.record(Make.recording(0n, [], over)))
        yield* refused(journal.nextNonce(Make.lane, -1n))
      })
    )
  })

  describe(`signed transactions in ${name}`, () => {
    fact(
      "a transaction takes ops of several requests, each ready, once, of its chain and authority",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* acceptOp("r2", 3)
        const [one, two, three] = yield* journal.ready(Make.lane, 9)
        if (one === undefined || two === undefined || three === undefined)
          return expect.fail("three are ready")
        yield* giveUp(journal, "r1", [2])
        const sign = (ops: ReadonlyArray<typeof one>, over = {}) =>
          journal.record(Make.recording(0n, ops, over))
        yield* refused(sign([one, one]))
        for (const lane of [{ signer: Make.address(0x52) }, { chainId: 1n }])
          yield* refused(sign([one], lane))
        const unknown = { ...one, opId: 1_000_000 }
        expect(yield* sign([one, two, unknown])).toEqual({
          _tag: "givenUp",
          opIds: [two.opId, unknown.opId]
        })
        expect([yield* stateOf(1), yield* stateOf(2)]).toEqual(["accepted", "abandoned"])
        expect(yield* sign([three, one])).toEqual(recorded)
        expect([yield* stateOf(1), yield* stateOf(3)]).toEqual(["sent", "sent"])
        expect(yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)).toEqual([
          "r1",
          "r2"
        ])
        expect(yield* journal.record(Make.recording(1n, [one, three]))).toEqual({
          _tag: "givenUp",
          opIds: [one.opId, three.opId]
        })
      })
    )

    fact(
      "one op is never in two open transactions",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        const ops = yield* readyOf(journal, Make.lane, [{ requestId: "r1", index: 1 }])
        const results = yield* Effect.forEach(
          [0n, 5n],
          (chainNonce) => journal.record(Make.recording(chainNonce, ops, { chainNonce })),
          { concurrency: "unbounded" }
        )
        expect(results.map(({ _tag }) => _tag).toSorted()).toEqual(["givenUp", "recorded"])
        expect(yield* journal.openOf(Make.lane)).toMatchObject([{ ops: [{ index: 1 }] }])
      })
    )

    fact(
      "an element prepared again since is carried only under its present hash",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        const ops = yield* journal.ready(Make.lane, 9)
        const again = Make.op({ index: 1, nonceKey: 1n, userOpHash: Make.word(2) })
        yield* journal.renew(Make.lane, [again])
        expect(yield* journal.record(Make.recording(0n, ops))).toMatchObject({ _tag: "givenUp" })
        expect(yield* record(journal, "r1", [1])).toEqual(recorded)
        expect(yield* stateOf(2)).toBe("sent")
      })
    )

    fact(
      "a nonce may have several versions; any of them may settle it, and none after that",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* record(journal, "r1", [1])
        const second = Make.word(0x2000)
        yield* journal.replace(Make.signed(0n, { txHash: second }))
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toMatchObject({
          txHash: second
        })
        yield* refused(journal.settle(Make.mined(0n, { txHash: Make.word(0x3000) }), [], true))
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toMatchObject({
          state: "settled",
          txHash: Make.mined(0n).txHash
        })
        yield* refused(journal.settle(Make.mined(0n, { txHash: second }), [], true))
        expect(yield* journal.replace(Make.signed(0n, { txHash: Make.word(0x4000) }))).toBe(false)
      })
    )
  })
}
