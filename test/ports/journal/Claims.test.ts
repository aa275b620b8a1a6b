import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Holding from "../../../src/application/ports/journal/Holding.js"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { accept, answer, openIn, record, refused } from "../../support/journal/Facts.js"
import type * as Journals from "../../support/journal/Journals.js"
import * as Layers from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

type Service = Journals.Methods

const databases = Postgres.perFile()

const by = (process: string, independent: ReadonlyArray<string> = []) => ({ process, independent })
const recorded = { _tag: "recorded" }

/** Accepts op 0 of a request, with a hash. */
const accepted = (journal: Service, requestId = "r1", n = 1) =>
  accept(journal, Make.acceptance(requestId, [Make.op({ nonceKey: BigInt(n), userOpHash: Make.word(n) })]))

const access = Make.access()
const adopted = { txHash: Make.word(0xf0), maxFeePerGas: 7n, maxPriorityFeePerGas: 3n }

/** Every call that changes something of the lane, of a request whose op 0 is in its transaction 0. */
const changes = (one: Service): ReadonlyArray<Effect.Effect<unknown, JournalError>> => [
  one.openElements(Make.lane, Make.opening("r1", [Make.op({ index: 1, nonceKey: 9n })])),
  one.renew(Make.lane, [Make.op({ nonceKey: 1n, userOpHash: Make.word(2) })]),
  one.renumber(Make.lane, [Make.op({ nonceKey: 1n, sequence: 5n, userOpHash: Make.word(2) })]),
  one.fail(Make.lane, [{ requestId: "r1", failed: [Make.failed(0)] }]),
  one.publish(Make.lane, [1]),
  // Its ops may be carried or unknown: the claim of another process decides.
  one.record(Make.recording(1n, [])),
  one.record(Make.recording(1n, [{ opId: 1, userOpHash: Make.word(1) }])),
  one.replace(Make.signed(0n, { txHash: Make.word(0x2000) })),
  one.recordSubmitted(Make.lane, [{ nonce: 0n, txHash: Make.signed(0n).txHash }]),
  one.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true),
  one.finalise(Make.lane, 0n, Make.settledDepth),
  one.unsettle(Make.lane, 0n),
  one.recordExternalUse(Make.lane, 0n, []),
  one.adopt({ ...Make.lane, nonce: 1n, requestId: "r1", access, transaction: adopted }),
  one.note("r1", "{}"),
  one.handOver(Make.lane, { node: Make.node(), since: 1n, ops: [] }),
  one.takeBack(Make.lane, [Make.word(1)], true),
  one.recordTaken(Make.lane.signer, Make.chainId, [Make.word(1)]),
  one.recordInclusions(Make.lane.signer, Make.chainId, [Make.landed(Make.word(1), 0n)], Make.node()),
  one.revertInclusions(Make.lane.signer, Make.chainId, [Make.word(1)]),
  one.finaliseInclusions(Make.lane.signer, Make.chainId, [Make.deep(Make.word(1))]),
  one.keepUnread(Make.lane),
  one.explain(Make.lane, 1n),
  one.identifyAnew(Make.lane, "r1", [{ index: 0, userOpHash: Make.word(2) }]),
  one.hold(Make.lane, "r1", "why")
]

for (const [name, pair] of Object.entries(Layers.pairs(databases))) {
  const fact = (text: string, body: (one: Service, other: Service) => Effect.Effect<void, unknown>) =>
    it.effect(text, () => Effect.flatMap(pair, ([one, other]) => body(one, other)))

  describe(`claims of lanes in ${name}`, () => {
    fact("an unclaimed lane belongs to the first instance that changes it", (one, other) =>
      Effect.gen(function* () {
        yield* accepted(other)
        expect(yield* record(one, "r1", [0])).toEqual(recorded)
        yield* refused(record(other, "r1", []))
      })
    )

    fact("after a new claim the former owner's writes have no effect", (one, other) =>
      Effect.gen(function* () {
        expect(yield* one.claim(Make.lane, by("one"))).not.toBe(null)
        yield* accepted(one)
        yield* record(one, "r1", [0])
        const before = yield* one.open
        expect(yield* other.claim(Make.lane, by("other"))).not.toBe(null)
        for (const late of changes(one)) expect((yield* Effect.flip(late)).isFenced).toBe(true)
        expect(yield* other.open).toEqual(before)
        yield* other.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        expect(yield* answer(other, "r1")).toBe("{}")
      })
    )

    fact(
      "a write begun under an earlier holding of the lane is refused though the holder is the same",
      (one, other) =>
        Effect.gen(function* () {
          const hold = (journal: Service, process: string) =>
            Effect.map(journal.claim(Make.lane, by(process)), (epoch) => ({
              ...Make.lane,
              epoch: epoch ?? 0
            }))
          const first = yield* hold(one, "one")
          const begun = Effect.provideService(Holding.begun, { holding: first })
          yield* begun(accepted(one))
          yield* begun(record(one, "r1", [0]))
          yield* hold(other, "other")
          const now = yield* hold(one, "one")
          const before = yield* one.open
          for (const late of changes(one)) expect((yield* Effect.flip(begun(late))).isFenced).toBe(true)
          expect(yield* one.open).toEqual(before)
          // Work begun since, work of another lane, and work that outlives its beginner.
          const settling = one.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
          yield* Effect.provideService(settling, Holding.begun, { holding: { ...first, chainId: 137n } })
          yield* begun(Effect.flatMap(Effect.forkChild(Holding.outlive(settling)), Fiber.join))
          yield* Effect.provideService(settling, Holding.begun, { holding: now })
        })
    )

    fact(
      "any instance accepts a new request of a lane, answers and cancels, whichever instance claims it",
      (one, other) =>
        Effect.gen(function* () {
          yield* one.claim(Make.lane, by("one"))
          expect(yield* accepted(other)).toEqual({ _tag: "accepted" })
          expect(yield* openIn(one)).toEqual(["r1"])
          const cancellation = { code: "request_cancelled", outcome: "{}", onlyUnsigned: false } as const
          expect(yield* other.cancel("r1", cancellation)).toBe("final")
          yield* accept(other, Make.acceptance("r2", []))
          expect(yield* answer(other, "r2")).toBe("{}")
        })
    )

    fact("the lane of a live independent process stays with it", (one, other) =>
      Effect.gen(function* () {
        yield* one.claim(Make.lane, by("one"))
        expect(yield* other.claim(Make.lane, by("other", ["one"]))).toBe(null)
        yield* accepted(one)
        expect(yield* record(one, "r1", [0])).toEqual(recorded)
        expect(yield* other.claim(Make.lane, by("other", ["a third"]))).not.toBe(null)
      })
    )

    fact("a lane claimed for no process goes to the next claimant", (one, other) =>
      Effect.gen(function* () {
        yield* one.claim(Make.lane, by(""))
        expect(yield* other.claim(Make.lane, by("other", ["one"]))).not.toBe(null)
        expect(yield* one.claim(Make.lane, by("", ["other"]))).toBe(null)
      })
    )

    fact("a lane finally claimed for a process stays with that process", (one, other) =>
      Effect.gen(function* () {
        yield* accepted(one)
        yield* record(one, "r1", [])
        yield* one.claim(Make.lane, by("one"))
        expect(yield* other.claim(Make.lane, by("other", ["one"]))).toBe(null)
        expect(yield* record(one, "r1", [0])).toEqual(recorded)
      })
    )

    fact("a lane claimed twice by one instance keeps the writes begun before", (one) =>
      Effect.gen(function* () {
        const first = yield* one.claim(Make.lane, by("one"))
        yield* accepted(one)
        expect(yield* one.claim(Make.lane, by("one"))).toBe(first)
        const holding = { ...Make.lane, epoch: first ?? 0 }
        expect(yield* Effect.provideService(record(one, "r1", [0]), Holding.begun, { holding })).toEqual(
          recorded
        )
      })
    )

    fact("lanes with work are listed with the account and the key", (one, other) =>
      Effect.gen(function* () {
        const lane = { lane: Make.lane, accountId: Make.alice, key: { clientId: "key 1" } }
        expect(yield* one.busy).toEqual([])
        yield* accepted(other)
        yield* accept(other, Make.acceptance("r2", []))
        expect(yield* one.busy).toEqual([lane])
        yield* record(other, "r1", [0])
        yield* other.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
        for (const requestId of ["r1", "r2"]) expect(yield* answer(other, requestId)).toBe("{}")
        expect(yield* one.busy).toEqual([lane])
        expect(new Set(yield* one.finalAmong(["r1", "r2", "unknown"]))).toEqual(new Set(["r1", "r2"]))
        yield* other.finalise(Make.lane, 0n, Make.settledDepth)
        expect(yield* one.busy).toEqual([])
      })
    )
  })
}
