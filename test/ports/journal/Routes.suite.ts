import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { factOf, refused, stateOf } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const allocated = (nonce: bigint) => ({ _tag: "allocated", nonce })
const otherRoute = { _tag: "otherRoute" }

/** Accepts op 1 of one EntryPoint, ops 2 and 3 of another one, and a request `d1` for transactions of its own. */
const acceptRoutes = Effect.gen(function* () {
  const journal = yield* Journals.all
  const opOf = (n: number, entryPoint = Make.entryPoint) =>
    Make.op({ index: n, nonceKey: BigInt(n), userOpHash: Make.word(n), space: Make.space(1, { entryPoint }) })
  yield* journal.acceptOps(
    Make.acceptance("r2", [opOf(1), opOf(2, Make.otherEntryPoint), opOf(3, Make.otherEntryPoint)])
  )
  yield* journal.acceptOps(Make.acceptance("d1", []))
})

const one = Make.allocation("r2", { ops: [1] })
const other = Make.allocation("r2", { ops: [2] })
const direct = Make.allocation("d1", { direct: "d1" })

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`routes of the lane in ${name}`, () => {
    for (const [text, first, second] of [
      ["an op of another EntryPoint waits for the transaction of the first", one, other],
      ["a transaction of the signer's own waits for ops", one, direct],
      ["ops wait for a transaction of the signer's own", direct, one]
    ] as const)
      fact(
        text,
        Effect.gen(function* () {
          const journal = yield* Journals.all
          yield* acceptRoutes
          yield* journal.allocate(first)
          yield* journal.recordSigned(Make.signed(0n))
          expect(yield* journal.allocate(second)).toEqual(otherRoute)
          yield* refused(journal.unallocate(Make.lane, 1n))
          yield* journal.recordSigned(Make.signed(0n, { txHash: Make.word(0x2000), addedCost: 1n }))
          expect(yield* journal.allocate(second)).toEqual(otherRoute)
          yield* journal.settle(Make.mined(0n), [], false)
          expect(yield* journal.allocate(second)).toEqual(allocated(1n))
          yield* journal.recordSigned(Make.signed(1n))
        })
      )

    fact(
      "transactions of one route follow each other at once",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptRoutes
        yield* journal.allocate(other)
        yield* journal.recordSigned(Make.signed(0n))
        expect(yield* journal.allocate(Make.allocation("r2", { ops: [3] }))).toEqual(allocated(1n))
      })
    )

    fact(
      "what the chain says is used, by whatever transaction, holds nothing up",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptRoutes
        yield* journal.allocate({ ...direct, chainNonce: 3n })
        yield* journal.recordSigned(Make.signed(3n))
        expect(yield* journal.allocate({ ...one, chainNonce: 4n, drainedTo: 3n })).toEqual(otherRoute)
        expect(yield* journal.allocate({ ...one, chainNonce: 4n, drainedTo: 4n })).toEqual(allocated(4n))
        yield* refused(journal.recordSigned(Make.signed(4n, { drainedTo: 3n })))
        yield* journal.recordSigned(Make.signed(4n, { drainedTo: 4n }))
        yield* refused(journal.allocate({ ...one, drainedTo: -1n }))
      })
    )

    fact(
      "of two routes that were handed out before, one is signed",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptRoutes
        yield* journal.allocate({ ...one, chainNonce: 5n })
        yield* journal.allocate(other)
        yield* journal.recordSigned(Make.signed(5n))
        yield* refused(journal.recordSigned(Make.signed(0n)))
        expect([yield* stateOf(1), yield* stateOf(2)]).toEqual(["sent", "accepted"])
        yield* journal.settle(Make.mined(5n), [], false)
        yield* journal.recordSigned(Make.signed(0n))
        expect(yield* stateOf(2)).toBe("sent")
      })
    )
  })
}
