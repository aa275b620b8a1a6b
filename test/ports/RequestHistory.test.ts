import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlJournal from "../../src/adapters/sql/journal/Journal.js"
import * as SqlRequestHistory from "../../src/adapters/sql/operator/RequestHistory.js"
import type { Acceptance } from "../../src/application/ports/journal/Records.js"
import { RequestHistory } from "../../src/application/ports/operator/RequestHistory.js"
import { accept, answer } from "../support/journal/Facts.js"
import * as Journals from "../support/journal/Journals.js"
import * as Layers from "../support/journal/Layers.js"
import * as Make from "../support/journal/Make.js"
import * as Time from "../support/Time.js"

const clients = Layers.clients()

const acceptance = (requestId: string, over: Partial<Acceptance> = {}): Acceptance =>
  Make.acceptance(requestId, [], over)

describe.each(Object.entries(clients))("the history of requests in %s", (_, client) => {
  it.effect("lists accepted requests, the newest first, by account, chain, endpoint, state and page", () =>
    Effect.gen(function* () {
      const sql = Layer.fresh(yield* client)
      yield* Effect.gen(function* () {
        const journal = yield* Journals.all
        const history = yield* RequestHistory
        const ids = (question: Omit<Parameters<typeof history.find>[0], "limit">, limit = 10) =>
          Effect.map(history.find({ ...question, limit }), (entries) =>
            entries.map(({ requestId }) => requestId)
          )
        yield* Time.setTime(1_000)
        yield* accept(journal, acceptance("one"))
        yield* Time.setTime(2_500)
        yield* accept(journal, acceptance("two", { accountId: Make.bob, endpoint: "/transactSigner" }))
        yield* accept(journal, acceptance("three", { lane: { ...Make.lane, chainId: 137n } }))
        yield* answer(journal, "one")
        yield* answer(journal, "two")
        yield* journal.forget(2_000)
        // A declined request is not part of the history.
        yield* journal.decline("declined")

        const entries = yield* history.find({ limit: 10 })
        expect(entries).toEqual([
          {
            number: entries[0]?.number,
            requestId: "three",
            accountId: Make.alice,
            endpoint: "/execute",
            chainId: 137n,
            state: "pending",
            result: null,
            failure: null,
            elements: 1,
            acceptedAt: 2_500
          },
          expect.objectContaining({
            requestId: "two",
            state: "final",
            result: "succeeded",
            accountId: Make.bob
          }),
          expect.objectContaining({ requestId: "one", state: "forgotten", acceptedAt: 1_000 })
        ])
        // A forgotten request keeps only its id.
        expect(yield* ids({ accountId: Make.alice })).toEqual(["three"])
        expect(yield* ids({ chainId: Make.chainId })).toEqual(["two"])
        expect(yield* ids({ endpoint: "/transactSigner" })).toEqual(["two"])
        expect(yield* ids({ state: "pending" })).toEqual(["three"])
        expect(yield* ids({ state: "forgotten", accountId: Make.bob })).toEqual([])
        expect(yield* ids({}, 2)).toEqual(["three", "two"])
        expect(yield* ids({ before: entries[1]?.number })).toEqual(["one"])

        // An account's pages go by time, whatever number a request got.
        yield* Time.setTime(2_000)
        yield* accept(journal, acceptance("late", { accountId: Make.bob }))
        const own = yield* history.find({ accountId: Make.bob, limit: 10 })
        expect(own.map(({ requestId }) => requestId)).toEqual(["two", "late"])
        const [newest, oldest] = own.map(({ number }) => number)
        expect(yield* ids({ accountId: Make.bob, before: newest })).toEqual(["late"])
        expect(yield* ids({ accountId: Make.bob, before: oldest, isOldestFirst: true })).toEqual(["two"])
      }).pipe(
        Effect.provide(
          Layer.mergeAll(SqlRequestHistory.layer, SqlJournal.layer(Layers.options)).pipe(
            Layer.provide(sql),
            Layer.orDie
          )
        )
      )
    })
  )

  it.effect("lists requests with their outcome, waiting requests, and requests that match a text", () =>
    Effect.gen(function* () {
      const sql = Layer.fresh(yield* client)
      yield* Effect.gen(function* () {
        const journal = yield* Journals.all
        const history = yield* RequestHistory
        yield* Time.setTime(1_000)
        const ended = [
          ["all", { httpStatus: 200, status: 1 }, "succeeded"],
          [
            "some",
            { httpStatus: 200, status: 4, elements: [{ index: 0 }, { index: 1, error: "too poor" }] },
            "partly"
          ],
          ["none", { httpStatus: 200, status: 0 }, "failed"],
          ["refused", { httpStatus: 422, code: "window_passed" }, "failed"]
        ] as const
        for (const [requestId, summary] of ended) {
          yield* accept(journal, acceptance(requestId))
          yield* answer(journal, requestId, "{}", summary)
        }
        yield* accept(journal, acceptance("cancelled"))
        yield* journal.cancel("cancelled", {
          code: "request_cancelled",
          outcome: "{}",
          onlyUnsigned: false
        })
        const results = new Map(
          (yield* history.find({ limit: 10 })).map(({ requestId, result }) => [requestId, result])
        )
        for (const [requestId, , result] of ended)
          expect([requestId, results.get(requestId)]).toEqual([requestId, result])
        const [some] = yield* history.search("some", 1)
        expect(some?.failure).toEqual({ code: "execution_failed", message: "too poor" })
        const [refused] = yield* history.search("refused", 1)
        expect(refused?.failure).toEqual({ code: "window_passed", message: null })
        expect(results.get("cancelled")).toBe("cancelled")
        expect(yield* history.waiting).toEqual([])

        yield* Time.setTime(2_000)
        const op = Make.op({ index: 0, userOpHash: Make.word(7) })
        yield* accept(
          journal,
          acceptance("waits", { ...Make.acceptance("waits", [op]), metadata: { order: "INV-1%" } })
        )
        yield* Time.setTime(3_000)
        yield* accept(journal, acceptance("later", { unopened: 2, elements: 2 }))
        expect(yield* history.waiting).toEqual([{ chainId: Make.chainId, ops: 3, oldestAt: 2_000 }])
        const pending = yield* history.find({ state: "pending", isOldestFirst: true, limit: 10 })
        expect(pending.map(({ requestId }) => requestId)).toEqual(["waits", "later"])

        const found = (text: string) =>
          Effect.map(history.search(text, 10), (entries) => entries.map(({ requestId }) => requestId))
        for (const text of ["waits", Make.word(7), op.space.wallet, "INV-1%"])
          expect([text, yield* found(text)]).toEqual([text, ["waits"]])
        for (const text of ["INV-1", "INV", "%", "wait", Make.word(8), Make.address(0x99), "'"])
          expect([text, yield* found(text)]).toEqual([text, []])
        const [ofWallet, ...more] = yield* history.search("wait", 10, [op.space.wallet, Make.address(0x99)])
        expect([ofWallet?.requestId, more]).toEqual(["waits", []])
      }).pipe(
        Effect.provide(
          Layer.mergeAll(SqlRequestHistory.layer, SqlJournal.layer(Layers.options)).pipe(
            Layer.provide(sql),
            Layer.orDie
          )
        )
      )
    })
  )
})
