import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Acceptance } from "../../../src/application/ports/journal/Records.js"
import {
  accept,
  answer,
  factOf,
  handOver,
  openIn,
  record,
  refused,
  signOps
} from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"

const accepted = { _tag: "accepted" }
const idempotency = (key: string, n = 1) => ({ key, bodyHash: Make.word(n) })

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)
  const acceptEmpty = (requestId: string, over: Partial<Acceptance> = {}) =>
    Effect.flatMap(Journals.all, (journal) => accept(journal, Make.acceptance(requestId, [], over)))

  describe(`requests in ${name}`, () => {
    fact(
      "an accepted request is read back whole",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const body = JSON.stringify({ text: "новый 🏰 \u0000 \ud800", calls: "0x".padEnd(100_000, "ab") })
        const figures = { limit: "7", "__proto__ ": "x" }
        yield* Time.setTime(1_900_000_000_123)
        const ops = [2, 0].map((index) =>
          Make.op({ index, nonceKey: BigInt(index), userOpHash: Make.word(index) })
        )
        const acceptance = Make.acceptance("r2", ops, {
          body,
          previews: '["what moves"]',
          policies: [{ layer: "operator", subject: "wallet:*", version: 7 }],
          idempotency: idempotency("key"),
          failed: [Make.failed(5, { figures }), Make.failed(3)],
          metadata: { order: "№ 4711 🏰", by: "a:b" }
        })
        expect(yield* accept(journal, acceptance)).toEqual(accepted)
        const request = yield* journal.request("r2")
        expect(request).toEqual({
          requestId: "r2",
          accountId: Make.alice,
          endpoint: "/execute",
          lane: Make.lane,
          body,
          previews: '["what moves"]',
          policies: [{ layer: "operator", subject: "wallet:*", version: 7 }],
          idempotency: idempotency("key"),
          elements: 2,
          acceptedAt: 1_900_000_000_123,
          metadata: { order: "№ 4711 🏰", by: "a:b" },
          ops: [0, 2].map((index) => expect.objectContaining({ index, state: "accepted" })),
          held: null,
          signed: [],
          failed: [Make.failed(5, { figures }), Make.failed(3)],
          txHashes: [],
          cancelled: null,
          note: null,
          notBefore: null,
          outcome: null
        })
        expect(request?.ops[1]).toEqual(yield* journal.findOp(Make.alice, Make.chainId, Make.word(2)))
        expect(yield* journal.request("r3")).toBeNull()
      })
    )

    fact(
      "a request accepted again under its id keeps its first content",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptEmpty("r2", { body: "first", idempotency: idempotency("a") })
        yield* acceptEmpty("r3", { idempotency: idempotency("b") })
        expect(yield* acceptEmpty("r2", { body: "second", idempotency: idempotency("b") })).toEqual(accepted)
        expect(yield* acceptEmpty("r2", { body: "third" })).toEqual(accepted)
        expect(yield* journal.request("r2")).toMatchObject({
          body: "first",
          idempotency: idempotency("a")
        })
        expect((yield* journal.requestOf(Make.alice, "/execute", "b"))?.requestId).toBe("r3")
      })
    )

    fact(
      "an idempotency key has one request per account and endpoint, and identifies it",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const own = { idempotency: idempotency("key", 7) }
        expect(yield* acceptEmpty("r2", own)).toEqual(accepted)
        const ops = [Make.op({ userOpHash: Make.word(1) })]
        const again = Make.acceptance("r3", ops, { idempotency: idempotency("key", 8) })
        expect(yield* accept(journal, again)).toEqual({
          _tag: "known",
          requestId: "r2",
          bodyHash: Make.word(7)
        })
        expect(yield* journal.request("r3")).toBeNull()
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toBeNull()
        expect(yield* acceptEmpty("r4", { ...own, endpoint: "/create" })).toEqual(accepted)
        expect(yield* acceptEmpty("r5", { ...own, accountId: Make.bob })).toEqual(accepted)
        expect(yield* acceptEmpty("r6", { ...own, lane: { ...Make.lane, chainId: 1n } })).toMatchObject({
          _tag: "known",
          requestId: "r2"
        })
        const of = (endpoint: string, key: string, account = Make.alice) =>
          journal.requestOf(account, endpoint, key)
        expect(yield* of("/execute", "key")).toEqual({ requestId: "r2", bodyHash: Make.word(7) })
        expect(yield* of("/create", "key")).toMatchObject({ requestId: "r4" })
        expect(yield* of("/execute", "key", Make.bob)).toMatchObject({ requestId: "r5" })
        expect(yield* of("/execute", "Key")).toBeNull()
        expect(yield* of("/transact", "key")).toBeNull()
      })
    )

    fact(
      "one of concurrent requests with one key is accepted, and the others get its id",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const results = yield* Effect.all(
          Array.from({ length: 30 }, (_, n) => acceptEmpty(`c${n}`, { idempotency: idempotency("key", n) })),
          { concurrency: "unbounded" }
        )
        const winner = results.findIndex((result) => result?._tag === "accepted")
        const known = { _tag: "known", requestId: `c${winner}`, bodyHash: Make.word(winner) }
        expect(results).toEqual(results.map((_, n) => (n === winner ? accepted : known)))
        expect(yield* journal.requestOf(Make.alice, "/execute", "key")).toEqual({
          requestId: `c${winner}`,
          bodyHash: Make.word(winner)
        })
      })
    )

    fact(
      "an endpoint's private data come from the first acceptance, until others are stored",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const note = Effect.map(journal.request("r2"), (request) => request?.note)
        const long = `0x${"ab".repeat(2_000)}`
        yield* acceptEmpty("r2", { note: long })
        yield* acceptEmpty("r2", { note: "0x01" })
        expect(yield* note).toBe(long)
        yield* journal.note("r2", "[1]")
        expect(yield* note).toBe("[1]")
        yield* answer(journal, "r2")
        yield* refused(journal.note("r2", "[2]"))
        yield* refused(journal.note("r9", "[2]"))
        expect(yield* note).toBe("[1]")
      })
    )

    fact(
      "exactly one of a concurrent acceptance and refusal takes effect",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ids = Array.from({ length: 20 }, (_, n) => `race ${n}`)
        const won = yield* Effect.forEach(
          ids,
          (requestId, n) => {
            const both = [
              acceptEmpty(requestId, { idempotency: idempotency(requestId) }),
              journal.decline(requestId)
            ] as const
            return Effect.map(
              n % 2 === 0
                ? Effect.all(both, { concurrency: 2 })
                : Effect.map(Effect.all([both[1], both[0]], { concurrency: 2 }), ([a, b]) => [b, a] as const),
              ([acceptance, declined]) => {
                expect(acceptance).toEqual(declined === null ? { _tag: "over" } : accepted)
                return declined !== null
              }
            )
          },
          { concurrency: "unbounded" }
        )
        const found = yield* Effect.forEach(ids, journal.request)
        expect(found.map((request) => request !== null)).toEqual(won)
      })
    )
  })

  describe(`the journal in ${name} forgets`, () => {
    const finished = (requestId: string, over: Partial<Acceptance> = {}) =>
      Effect.flatMap(Journals.all, (journal) =>
        Effect.andThen(acceptEmpty(requestId, over), answer(journal, requestId))
      )

    fact(
      "final requests past their age, with their ops and transactions; not their ids",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* Time.setTime(1_000)
        yield* signOps("r1", [1])
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        yield* answer(journal, "r1")
        yield* finished("r2", { idempotency: idempotency("key") })
        yield* acceptEmpty("open", {})
        yield* Time.setTime(1_001)
        yield* finished("young")
        yield* journal.forget(1_000)
        expect(yield* journal.request("r2")).not.toBeNull()
        yield* journal.forget(1_001)
        expect(yield* journal.request("r1")).toBeNull()
        expect(yield* journal.request("r2")).toBeNull()
        expect(yield* journal.request("open")).not.toBeNull()
        expect(yield* journal.request("young")).not.toBeNull()
        expect(yield* openIn(journal)).toEqual(["open"])
        expect(yield* journal.requestOf(Make.alice, "/execute", "key")).toBeNull()
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toBeNull()
        const { txHash } = Make.signed(0n)
        expect(yield* journal.findTransaction(Make.alice, Make.chainId, txHash)).toBeNull()
        expect(yield* acceptEmpty("r4", { idempotency: idempotency("key") })).toEqual(accepted)
        expect(yield* acceptEmpty("r2")).toEqual({ _tag: "over" })
        yield* answer(journal, "r2")
        yield* journal.fail(Make.lane, [{ requestId: "r2", failed: [Make.failed(0)] }])
        expect(yield* journal.request("r2")).toBeNull()
      })
    )

    fact(
      "no row that a reorganisation or a late landing could change",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("ops", [1])
        const own = { ...Make.lane, signer: Make.address(0x52) }
        yield* accept(journal, Make.acceptance("direct", [Make.direct("direct", own)]))
        yield* record(journal, "direct", [0], { ...own, chainNonce: 1n })
        yield* accept(
          journal,
          Make.acceptance("handed", [Make.op({ index: 9, nonceKey: 9n, userOpHash: Make.word(9) })])
        )
        yield* handOver(journal, "handed", [9])
        const all = ["ops", "direct", "handed"]
        const finish = Effect.forEach(all, (requestId) => answer(journal, requestId))
        expect(yield* finish).toEqual([null, null, null])
        const left = Effect.gen(function* () {
          yield* journal.forget(1)
          const found = yield* Effect.forEach(all, journal.request)
          return found.flatMap((request) => request?.requestId ?? [])
        })
        expect(yield* left).toEqual(all)
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
        yield* journal.settle(Make.mined(1n, own), [], false)
        expect(yield* finish).toEqual(["{}", "{}", null])
        expect(yield* left).toEqual(all)
        yield* journal.finalise(Make.lane, 0n, Make.settledDepth)
        expect(yield* left).toEqual(["direct", "handed"])
        yield* journal.finalise(own, 1n, Make.settledDepth)
        expect(yield* left).toEqual(["handed"])
        yield* journal.recordInclusions(
          Make.lane.signer,
          Make.chainId,
          [Make.landed(Make.word(9), 0n)],
          Make.node()
        )
        expect(yield* finish).toEqual(["{}", "{}", "{}"])
        expect(yield* left).toEqual(["handed"])
        yield* journal.finaliseInclusions(Make.lane.signer, Make.chainId, [Make.deep(Make.word(9))])
        expect(yield* left).toEqual([])
      })
    )

    fact(
      "the bytes, not the hashes, of a nonce with several versions: each hash leads to the mined one",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        const replaced = Make.signed(0n).txHash
        const second = Make.word(0x2000)
        yield* journal.replace(Make.signed(0n, { txHash: second }))
        yield* journal.settle(
          Make.mined(0n, { txHash: second }),
          [Make.landed(Make.word(1), 0n, { txHash: second })],
          true
        )
        yield* answer(journal, "r1")
        yield* journal.forget(1)
        expect(yield* journal.findTransaction(Make.alice, Make.chainId, replaced)).toMatchObject({
          state: "settled",
          ops: [],
          direct: null,
          mined: { txHash: second },
          versions: [
            { txHash: replaced, raw: "0x" },
            { txHash: second, raw: "0x" }
          ]
        })
      })
    )

    fact(
      "more rows than one transaction takes, and authorisations whose deadline is as old",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ids = Array.from({ length: 230 }, (_, n) => `r${n + 10}`)
        yield* Effect.forEach(ids, (requestId) => finished(requestId), { discard: true })
        const deployments = [
          Make.deployment({ deadline: 1_000 }),
          Make.deployment({ create2Salt: Make.word(2), deadline: 1_001 })
        ]
        yield* accept(journal, Make.acceptance("wallets", [], { deployments }))
        yield* journal.forget(1_001_000)
        expect(yield* Effect.forEach(ids, journal.request)).toEqual(ids.map(() => null))
        const anew = deployments.map((it) => ({ ...it, configHash: Make.word(0xc2), chainTime: 900 }))
        expect(
          yield* Effect.forEach(anew, (it, n) =>
            accept(journal, Make.acceptance(`anew ${n}`, [], { deployments: [it] }))
          )
        ).toMatchObject([{ _tag: "accepted" }, { _tag: "otherConfiguration" }])
      })
    )
  })
}
