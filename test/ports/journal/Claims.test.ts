import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Holding from "../../../src/application/ports/journal/Holding.js"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { refused } from "../../support/journal/Facts.js"
import type * as Journals from "../../support/journal/Journals.js"
import * as Layers from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

type Service = Journals.Methods

const databases = Postgres.perFile()

const by = (process: string, independent: ReadonlyArray<string> = []) => ({ process, independent })
const allocated = (nonce: bigint) => ({ _tag: "allocated", nonce })

/** Accepts op 0 of a request, with a hash. */
const accepted = (journal: Service, requestId = "r1", n = 1) =>
  journal.acceptOps(Make.acceptance(requestId, [Make.op({ nonceKey: BigInt(n), userOpHash: Make.word(n) })]))

/** Every call that changes something of the lane, of a request whose op 0 is in its transaction 0. */
const changes = (one: Service): ReadonlyArray<Effect.Effect<unknown, JournalError>> => [
  one.allocate(Make.allocation("r1")),
  // It is carried already, or not known: that another process works on the lane is what counts.
  one.allocate(Make.allocation("r1", { ops: [0] })),
  one.allocate(Make.allocation("unknown", { ops: [0] })),
  one.allocate(Make.allocation("unknown", { direct: "unknown" })),
  one.unallocate(Make.lane, 1n),
  one.recordSigned(Make.signed(0n, { txHash: Make.word(0x2000) })),
  one.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true),
  one.finalise(Make.lane, 0n, Make.settledDepth),
  one.unsettle(Make.lane, 0n),
  one.recordExternalUse(Make.lane, 0n, []),
  one.abandon("r1", [0]),
  one.abandonUnsigned("r1", [0]),
  one.identify("r1", [{ index: 0, userOpHash: Make.word(1) }]),
  one.refuse("r1", [Make.failed(0)]),
  one.finish("r1", "{}", {}),
  one.note("r1", "{}"),
  one.submitRemotely(Make.handing("r1", [0])),
  one.revokeRemote("r1", [0]),
  one.recordInclusions(Make.lane.signer, Make.chainId, [Make.landed(Make.word(1), 0n)], Make.node()),
  one.revertInclusions(Make.lane.signer, Make.chainId, [Make.word(1)]),
  one.finaliseInclusions(Make.lane.signer, Make.chainId, [Make.deep(Make.word(1))]),
  one.acceptOps(Make.acceptance("r1", [Make.op({ index: 1, nonceKey: 9n })]))
]

for (const [name, pair] of Object.entries(Layers.pairs(databases))) {
  const fact = (text: string, body: (one: Service, other: Service) => Effect.Effect<void, unknown>) =>
    it.effect(text, () => Effect.flatMap(pair, ([one, other]) => body(one, other)))

  describe(`claims of lanes in ${name}`, () => {
    fact("a lane that nobody has claimed belongs to the first that changes it", (one, other) =>
      Effect.gen(function* () {
        yield* accepted(other)
        expect(yield* one.allocate(Make.allocation("r1", { ops: [0] }))).toEqual(allocated(0n))
        yield* refused(other.allocate(Make.allocation("r1", { ops: [0] })))
      })
    )

    fact("once it is claimed anew nothing that its former owner does there has any effect", (one, other) =>
      Effect.gen(function* () {
        expect(yield* one.claim(Make.lane, by("one"))).not.toBe(null)
        yield* accepted(one)
        yield* one.allocate(Make.allocation("r1", { ops: [0] }))
        yield* one.recordSigned(Make.signed(0n))
        const before = yield* one.open
        expect(yield* other.claim(Make.lane, by("other"))).not.toBe(null)
        for (const late of changes(one)) expect((yield* Effect.flip(late)).isFenced).toBe(true)
        expect(yield* other.open).toEqual(before)
        yield* other.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        expect(yield* other.finish("r1", "{}", {})).toBe("{}")
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
          yield* begun(one.allocate(Make.allocation("r1", { ops: [0] })))
          yield* begun(one.recordSigned(Make.signed(0n)))
          yield* hold(other, "other")
          const now = yield* hold(one, "one")
          const before = yield* one.open
          for (const late of changes(one)) expect((yield* Effect.flip(begun(late))).isFenced).toBe(true)
          expect(yield* one.open).toEqual(before)
          // What has begun since, what began in another lane, and what outlives who has begun it.
          const settling = one.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
          yield* Effect.provideService(settling, Holding.begun, { holding: { ...first, chainId: 137n } })
          yield* begun(Effect.flatMap(Effect.forkChild(Holding.outliving(settling)), Fiber.join))
          yield* Effect.provideService(settling, Holding.begun, { holding: now })
        })
    )

    fact("any instance accepts a new request of a lane, whoever has claimed it", (one, other) =>
      Effect.gen(function* () {
        yield* one.claim(Make.lane, by("one"))
        expect(yield* accepted(other)).toEqual({ _tag: "accepted" })
        expect(yield* Make.unfinished(one)).toEqual(["r1"])
      })
    )

    fact(
      "bytes for a nonce of an earlier claim are refused, also after the lane has come back",
      (one, other) =>
        Effect.gen(function* () {
          yield* one.claim(Make.lane, by("one"))
          yield* accepted(one)
          yield* one.allocate(Make.allocation("r1", { ops: [0] }))
          yield* other.claim(Make.lane, by("other"))
          yield* one.claim(Make.lane, by("one"))
          yield* refused(one.recordSigned(Make.signed(0n)))
          expect(yield* one.allocate(Make.allocation("r1", { ops: [0] }))).toEqual(allocated(0n))
          yield* one.recordSigned(Make.signed(0n))
        })
    )

    fact("first bytes of a nonce that another owner has signed meanwhile are refused", (one, other) =>
      Effect.gen(function* () {
        yield* one.claim(Make.lane, by("one"))
        yield* accepted(one)
        yield* one.allocate(Make.allocation("r1", { ops: [0] }))
        yield* other.claim(Make.lane, by("other"))
        yield* other.allocate(Make.allocation("r1", { ops: [0] }))
        yield* other.recordSigned(Make.signed(0n))
        yield* one.claim(Make.lane, by("one"))
        yield* refused(
          one.recordSigned({ ...Make.signed(0n, { txHash: Make.word(0x2000) }), replaces: false })
        )
        yield* one.recordSigned(Make.signed(0n, { txHash: Make.word(0x2000) }))
      })
    )

    fact("a lane of an independent process that is alive is not taken from it", (one, other) =>
      Effect.gen(function* () {
        yield* one.claim(Make.lane, by("one"))
        expect(yield* other.claim(Make.lane, by("other", ["one"]))).toBe(null)
        yield* accepted(one)
        expect(yield* one.allocate(Make.allocation("r1", { ops: [0] }))).toEqual(allocated(0n))
        expect(yield* other.claim(Make.lane, by("other", ["a third"]))).not.toBe(null)
      })
    )

    fact("a lane that is claimed for no process is the next one's who claims it", (one, other) =>
      Effect.gen(function* () {
        yield* one.claim(Make.lane, by(""))
        expect(yield* other.claim(Make.lane, by("other", ["one"]))).not.toBe(null)
        expect(yield* one.claim(Make.lane, by("", ["other"]))).toBe(null)
      })
    )

    fact("a lane that its instance claims for a process at last is not taken from that", (one, other) =>
      Effect.gen(function* () {
        yield* accepted(one)
        yield* one.allocate(Make.allocation("r1", { ops: [0] }))
        yield* one.claim(Make.lane, by("one"))
        expect(yield* other.claim(Make.lane, by("other", ["one"]))).toBe(null)
        yield* one.recordSigned(Make.signed(0n))
      })
    )

    fact("claimed twice by one instance, its nonces that are handed out stay good", (one) =>
      Effect.gen(function* () {
        yield* one.claim(Make.lane, by("one"))
        yield* accepted(one)
        yield* one.allocate(Make.allocation("r1", { ops: [0] }))
        expect(yield* one.claim(Make.lane, by("one"))).not.toBe(null)
        yield* one.recordSigned(Make.signed(0n))
      })
    )

    fact("work is told by lane, with the account and the key of the lane", (one, other) =>
      Effect.gen(function* () {
        yield* accepted(other)
        yield* other.acceptOps(Make.acceptance("r2", [], { elements: 3 }))
        const open = (requestId: string) => ({
          requestId,
          accountId: Make.alice,
          elements: requestId === "r2" ? 3 : 1,
          endpoint: Make.acceptance(requestId, []).endpoint,
          acceptedAt: expect.any(Number),
          notBefore: null
        })
        const work = { lane: Make.lane, accountId: Make.alice, key: { clientId: "key 1" } }
        expect(yield* one.work).toEqual([
          {
            ...work,
            requests: ["r1", "r2"].map(open),
            hasTransactions: false
          }
        ])
        yield* other.allocate(Make.allocation("r1", { ops: [0] }))
        yield* other.recordSigned(Make.signed(0n))
        yield* other.finish("r2", "{}", {})
        expect(yield* one.work).toEqual([{ ...work, requests: [open("r1")], hasTransactions: true }])
        expect(yield* one.finalAmong(["r1", "r2", "unknown"])).toEqual(["r2"])
      })
    )
  })
}
