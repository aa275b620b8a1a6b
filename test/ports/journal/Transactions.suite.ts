import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import { acceptOp, factOf, refused, stateOf } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const allocated = (nonce: bigint) => ({ _tag: "allocated", nonce })

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`nonces of the lane in ${name}`, () => {
    fact(
      "nonces count by number, not by text",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const nonce of [9n, 10n, 99n, 100n, 2n ** 53n, 2n ** 64n - 1n]) {
          expect(yield* journal.allocate(Make.allocation("r1", { chainNonce: nonce }))).toEqual(
            allocated(nonce)
          )
          yield* journal.recordSigned(Make.signed(nonce))
        }
        yield* refused(journal.allocate(Make.allocation("r1", { chainNonce: 2n ** 64n - 1n })))
        for (const [chainNonce, nonce] of [
          [9n, 11n],
          [99n, 101n],
          [0n, 0n]
        ] as const)
          expect(yield* journal.allocate(Make.allocation("r1", { chainNonce }))).toEqual(allocated(nonce))
      })
    )

    fact(
      "an unsigned nonce that the chain has used up is forgotten when the next one is handed out",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* journal.allocate(Make.allocation("r1", { chainNonce: 5n }))
        expect(yield* journal.allocate(Make.allocation("r1", { chainNonce: 7n }))).toEqual(allocated(7n))
        yield* refused(journal.recordSigned(Make.signed(5n)))
        yield* refused(journal.unallocate(Make.lane, 5n))
        yield* journal.recordSigned(Make.signed(7n))
      })
    )

    fact(
      "lanes of other signers and chains count for themselves",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* journal.acceptOps(Make.acceptance("r2", [], { lane: { ...Make.lane, chainId: 1n } }))
        yield* journal.allocate(Make.allocation("r1", { chainNonce: 4n }))
        yield* journal.recordSigned(Make.signed(4n))
        const signer = Make.address(0x52)
        expect(yield* journal.allocate(Make.allocation("r1", { signer }))).toEqual(allocated(0n))
        expect(yield* journal.allocate(Make.allocation("r2", { chainId: 1n }))).toEqual(allocated(0n))
      })
    )

    fact(
      "concurrent callers, each signing before the next allocates, get gap-free nonces",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const lock = yield* Semaphore.make(1)
        const one = Effect.gen(function* () {
          const result = yield* journal.allocate(Make.allocation("r1"))
          if (result._tag !== "allocated") return yield* Effect.die(new Error(result._tag))
          yield* Effect.yieldNow
          yield* journal.recordSigned(Make.signed(result.nonce))
          return result.nonce
        })
        const nonces = yield* Effect.all(
          Array.from({ length: 50 }, () => lock.withPermits(1)(one)),
          { concurrency: "unbounded" }
        )
        expect([...nonces].sort((a, b) => Number(a - b))).toEqual(
          Array.from({ length: 50 }, (_, n) => BigInt(n))
        )
      })
    )
  })

  describe(`money of the lane in ${name}`, () => {
    const cost = 3n * Make.ether * 10n ** 6n

    fact(
      "signed transactions hold their cost until they are mined, and again when they vanish, to the wei",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const balance = 2n * cost
        const allocate = (maxCost: bigint) => journal.allocate(Make.allocation("r1", { maxCost, balance }))
        expect(yield* allocate(cost)).toEqual(allocated(0n))
        yield* journal.recordSigned(Make.signed(0n))
        expect(yield* allocate(cost + 1n)).toEqual({ _tag: "insufficientFunds", reserved: cost })
        expect(yield* allocate(cost)).toEqual(allocated(1n))
        yield* journal.recordSigned(Make.signed(1n))
        expect(yield* allocate(1n)).toEqual({ _tag: "insufficientFunds", reserved: 2n * cost })
        yield* journal.settle(Make.mined(0n), [], false)
        expect(yield* allocate(cost)).toEqual(allocated(2n))
        yield* journal.unsettle(Make.lane, 0n)
        expect(yield* allocate(1n)).toEqual({ _tag: "insufficientFunds", reserved: 2n * cost })
        yield* journal.settle(Make.mined(0n), [], true)
        yield* journal.recordExternalUse(Make.lane, 1n, [])
        expect(yield* allocate(2n * cost)).toEqual(allocated(2n))
      })
    )

    fact(
      "a replacement holds what it may cost more, once",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const allocate = (maxCost: bigint) =>
          journal.allocate(Make.allocation("r1", { maxCost, balance: 2n * cost }))
        yield* allocate(cost)
        yield* journal.recordSigned(Make.signed(0n))
        const replacement = Make.signed(0n, { txHash: Make.word(0x2000), addedCost: 7n })
        yield* journal.recordSigned(replacement)
        yield* journal.recordSigned(replacement)
        expect(yield* allocate(cost)).toEqual({ _tag: "insufficientFunds", reserved: cost + 7n })
        expect(yield* allocate(cost - 7n)).toEqual(allocated(1n))
        yield* journal.settle(Make.mined(0n), [], true)
        expect(yield* allocate(2n * cost)).toEqual(allocated(1n))
        yield* refused(journal.recordSigned(Make.signed(1n, { addedCost: -1n })))
      })
    )

    fact(
      "figures of more than 256 bits, or below zero, fail",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        for (const over of [{ maxCost: -1n }, { balance: 2n ** 256n }, { chainNonce: -1n }])
          yield* refused(journal.allocate(Make.allocation("r1", over)))
      })
    )
  })

  describe(`signed transactions in ${name}`, () => {
    fact(
      "a transaction takes ops of several requests, each of them accepted, once, of its chain and authority",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* acceptOp("r2", 3)
        yield* journal.abandon("r1", [2])
        const ref = (index: number, requestId = "r1") => ({ requestId, index })
        const allocate = (...ops: ReadonlyArray<ReturnType<typeof ref>>) =>
          journal.allocate({ ...Make.allocation("r1"), ops })
        for (const wrong of [ref(2), ref(3), ref(4), ref(-1), ref(1, "r2"), ref(1, "r9"), ref(1)])
          yield* refused(allocate(ref(1), wrong))
        for (const lane of [{ signer: Make.address(0x52) }, { chainId: 1n }])
          yield* refused(journal.allocate(Make.allocation("r1", { ...lane, ops: [1] })))
        expect(yield* allocate(ref(3, "r2"), ref(1))).toEqual(allocated(0n))
        yield* journal.recordSigned(Make.signed(0n))
        expect([yield* stateOf(1), yield* stateOf(3)]).toEqual(["sent", "sent"])
        yield* refused(allocate(ref(1)))
        expect(yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)).toEqual([
          "r1",
          "r2"
        ])
        yield* refused(allocate(ref(1)))
        yield* refused(allocate(ref(3, "r2")))
      })
    )

    fact(
      "one op is never in two open transactions, also when both were handed out before",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        for (const chainNonce of [0n, 5n])
          expect(yield* journal.allocate(Make.allocation("r1", { chainNonce, ops: [1] }))).toEqual(
            allocated(chainNonce)
          )
        yield* journal.recordSigned(Make.signed(5n))
        yield* refused(journal.recordSigned(Make.signed(0n)))
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toMatchObject({
          txHash: Make.signed(5n).txHash
        })
      })
    )

    fact(
      "an op without a hash is in no signed transaction: nobody could find its outcome",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* journal.acceptOps(Make.acceptance("r1", [Make.op()]))
        yield* journal.allocate(Make.allocation("r1", { ops: [0] }))
        yield* refused(journal.recordSigned(Make.signed(0n)))
        yield* journal.identify("r1", [{ index: 0, userOpHash: Make.word(1) }])
        yield* journal.recordSigned(Make.signed(0n))
        expect(yield* stateOf(1)).toBe("sent")
      })
    )

    fact(
      "an element that was accepted anew since is carried under its present hash alone",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const version = (sequence: bigint) => Make.op({ sequence, userOpHash: Make.word(sequence) })
        const carrying = (sequence: bigint) => ({
          ...Make.allocation("r1"),
          ops: [{ requestId: "r1", index: 0, userOpHash: Make.word(sequence) }]
        })
        yield* journal.acceptOps(Make.acceptance("r1", [version(1n)]))
        yield* journal.abandon("r1", [0])
        yield* journal.acceptOps(Make.acceptance("r1", [version(2n)]))
        yield* refused(journal.allocate(carrying(1n)))
        expect(yield* journal.allocate(carrying(2n))).toEqual(allocated(0n))
        yield* journal.recordSigned(Make.signed(0n))
        expect(yield* stateOf(2)).toBe("sent")
      })
    )

    fact(
      "bytes that carry an op which was given up are not stored",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* acceptOp("r1", 2)
        yield* journal.allocate(Make.allocation("r1", { ops: [1, 2] }))
        yield* journal.abandon("r1", [2])
        yield* refused(journal.recordSigned(Make.signed(0n)))
        expect(yield* stateOf(1)).toBe("accepted")
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* journal.recordSigned(Make.signed(0n))
        expect(yield* stateOf(1)).toBe("sent")
        expect(yield* stateOf(2)).toBe("abandoned")
      })
    )

    fact(
      "a nonce that was handed back forgets the ops of its former work",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* journal.unallocate(Make.lane, 0n)
        yield* journal.allocate(Make.allocation("r1"))
        yield* journal.recordSigned(Make.signed(0n))
        expect(yield* stateOf(1)).toBe("accepted")
        yield* journal.abandon("r1", [1])
        expect(yield* stateOf(1)).toBe("abandoned")
      })
    )

    fact(
      "a nonce may have several versions, any of which may settle it, and none after that",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* journal.allocate(Make.allocation("r1", { ops: [1] }))
        yield* journal.recordSigned(Make.signed(0n))
        yield* journal.recordSigned(Make.signed(0n))
        const second = Make.word(0x2000)
        yield* journal.recordSigned(Make.signed(0n, { txHash: second }))
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
        yield* refused(journal.recordSigned(Make.signed(0n, { txHash: Make.word(0x4000) })))
      })
    )
  })
}
