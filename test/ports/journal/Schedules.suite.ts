import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Schedule } from "../../../src/application/ports/journal/Requests.js"
import { accept, acceptOp, factOf, refused, signOps } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"

const schedule = { notBefore: 100, dueAt: 101_000 }
const cancellation = { code: "request_cancelled", outcome: "cancelled", onlyUnsigned: false } as const

const eventsOf = (requestId: string) =>
  Effect.map(
    Effect.flatMap(Journals.all, (journal) => journal.events(requestId, 0, 100)),
    (events) => events.map(({ data, kind }) => [kind, data])
  )

/** Makes the remaining elements of the request wait. */
const wait = (until: Schedule, requestId = "r1") =>
  Effect.flatMap(Journals.all, (journal) =>
    journal.openElements(Make.lane, Make.opening(requestId, [], { schedule: until }))
  )

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`schedules in ${name}`, () => {
    fact(
      "a waiting request has no element to open until it is due",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const unopened = Effect.map(journal.unopened(Make.lane, 9), (found) =>
          found.map(({ requestId }) => requestId)
        )
        yield* accept(journal, Make.acceptance("r2", [], { unopened: 1, schedule }))
        expect((yield* journal.request("r2"))?.notBefore).toBe(100)
        expect(yield* unopened).toEqual([])
        yield* Time.setTime(100_999)
        expect(yield* unopened).toEqual([])
        yield* Time.setTime(101_000)
        expect(yield* unopened).toEqual(["r2"])
        expect(yield* eventsOf("r2")).toEqual([
          ["accepted", {}],
          ["scheduled", { notBefore: 100 }]
        ])
      })
    )

    fact(
      "waiting requests are counted by account until they are due or final",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const countsOf = (all: typeof journal.waiting) =>
          Effect.map(all, (found) =>
            found.map(({ accountId, elements, requests }) => [accountId, requests, elements])
          )
        const counts = countsOf(journal.waiting)
        const going = countsOf(journal.going)
        expect(yield* counts).toEqual([])
        const before = yield* going
        const two = Make.acceptance("r2", [], { schedule, elements: 2 })
        yield* accept(journal, two)
        yield* accept(
          journal,
          Make.acceptance("r3", [], { schedule: { ...schedule, dueAt: 102_000 }, elements: 3 })
        )
        yield* accept(journal, Make.acceptance("r4", [], { schedule, elements: 4 }))
        expect(yield* counts).toEqual([[two.accountId, 3, 9]])
        yield* journal.cancel("r4", cancellation)
        expect(yield* counts).toEqual([[two.accountId, 2, 5]])
        expect(yield* going).toEqual(before)
        yield* Time.setTime(101_000)
        expect(yield* counts).toEqual([[two.accountId, 1, 3]])
        expect(yield* going).toEqual(
          before.map(([accountId, requests, elements]) => [
            accountId,
            Number(requests) + 1,
            Number(elements) + 2
          ])
        )
      })
    )

    fact(
      "remaining elements of a request may wait, and each due time is reported once",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* wait(schedule)
        yield* wait({ ...schedule, dueAt: 102_000 })
        yield* wait({ notBefore: 200, dueAt: 201_000 })
        expect(yield* journal.nextDue(Make.lane)).toBe(201_000)
        expect((yield* journal.request("r1"))?.notBefore).toBe(200)
        expect(yield* eventsOf("r1")).toEqual([
          ["accepted", {}],
          ["scheduled", { notBefore: 100 }],
          ["scheduled", { notBefore: 200 }]
        ])
      })
    )

    fact(
      "opening an element once it is due ends the waiting",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* wait(schedule)
        yield* acceptOp("r1", 1)
        expect((yield* journal.request("r1"))?.notBefore).toBe(null)
        expect(yield* journal.nextDue(Make.lane)).toBe(null)
      })
    )

    fact(
      "a reorganisation of one of its elements ends the waiting",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
        yield* wait(schedule)
        expect(yield* journal.nextDue(Make.lane)).toBe(101_000)
        yield* journal.unsettle(Make.lane, 0n)
        expect(yield* journal.nextDue(Make.lane)).toBe(null)
      })
    )

    fact(
      "a waiting request is cancelled like any other, and does not wait once it is final",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* wait(schedule)
        expect(yield* journal.cancel("r1", cancellation)).toBe("final")
        expect(yield* journal.request("r1")).toMatchObject({ outcome: "cancelled", notBefore: null })
        expect(yield* wait(schedule)).toEqual({ _tag: "over" })
        yield* refused(wait(schedule, "r9"))
      })
    )
  })
}
