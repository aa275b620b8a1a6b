import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Waiters from "../../../src/application/answers/Waiters.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { RequestRecord } from "../../../src/application/ports/journal/Requests.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

/** Requests of a journal, by outcome. */
const world = Effect.gen(function* () {
  const ended = new Set<string>()
  const outcomes = new Map<string, string>()
  const told: Array<string> = []
  const asked = { ended: 0, final: 0 }
  const away = new JournalError({ message: "the store is away" })
  const faults = { store: 0, reopened: 0, unreadable: 0 }
  const waiters = yield* Waiters.make({
    requestJournal: {
      ended: (requestIds) =>
        Effect.suspend(() => {
          asked.ended += 1
          if (faults.store > 0) {
            faults.store -= 1
            return away
          }
          return Effect.succeed(
            requestIds.filter((requestId) => ended.has(requestId) && !outcomes.has(requestId))
          )
        }),
      finalAmong: (requestIds) =>
        Effect.sync(() => {
          asked.final += 1
          return requestIds.filter((requestId) => outcomes.has(requestId))
        }),
      newestEvents: (requestIds) => Effect.succeed(new Map(requestIds.map((requestId) => [requestId, 7]))),
      requests: (requestIds) =>
        Effect.succeed(
          requestIds.map(
            (requestId) =>
              ({ requestId, outcome: outcomes.get(requestId) ?? null }) as unknown as RequestRecord
          )
        ),
      answer: (finals) =>
        Effect.sync(() =>
          finals.map(({ outcome, requestId, sequence }) => {
            expect(sequence).toBe(7)
            if (faults.reopened > 0) {
              faults.reopened -= 1
              return null
            }
            const first = outcomes.get(requestId) ?? outcome
            outcomes.set(requestId, first)
            return first
          })
        )
    },
    answered: (requestIds) => Effect.sync(() => void told.push(...requestIds)),
    finalOf: ({ requestId }) =>
      Effect.sync(() => {
        if (faults.unreadable > 0) {
          faults.unreadable -= 1
          return null
        }
        return { outcome: `answer of ${requestId}`, summary: {} }
      })
  })
  return { ...waiters, ended, outcomes, asked, faults, told }
})

describe("answers", () => {
  test("come immediately in the process where the caller waits", function* () {
    const { affected, ended, wait } = yield* world
    const fiber = yield* Effect.forkChild(wait("a", 60_000))
    yield* Time.settle
    ended.add("a")
    yield* affected(["a"])
    yield* Time.settle
    expect(yield* Fiber.join(fiber)).toBe("answer of a")
  })

  test("come after two seconds without a waiting caller", function* () {
    const { affected, ended, outcomes } = yield* world
    ended.add("a")
    yield* affected(["a"])
    yield* Time.adjust(1_900)
    expect(outcomes.size).toBe(0)
    yield* Time.adjust(200)
    expect(outcomes.get("a")).toBe("answer of a")
  })

  test("are announced once stored", function* () {
    const { affected, ended, told } = yield* world
    for (const requestId of ["a", "b"]) ended.add(requestId)
    yield* affected(["a", "b", "open"])
    yield* Time.adjust(2_000)
    expect(told).toEqual(["a", "b"])
  })

  test("come immediately from another process that announces them", function* () {
    const { recheck, outcomes, wait } = yield* world
    const fiber = yield* Effect.forkChild(wait("a", 60_000))
    yield* Time.settle
    outcomes.set("a", "theirs")
    yield* recheck("nobody's")
    yield* Time.settle
    expect(fiber.pollUnsafe()).toBe(undefined)
    yield* recheck("a")
    yield* Time.settle
    expect(yield* Fiber.join(fiber)).toBe("theirs")
  })

  test("are not waited for in a process that stops", function* () {
    const { stop, wait } = yield* world
    const fiber = yield* Effect.forkChild(wait("a", 60_000))
    yield* Time.settle
    yield* stop
    expect(yield* Fiber.join(fiber)).toBe(null)
    expect(yield* wait("b", 60_000)).toBe(null)
  })

  test("come from another process with the next poll of the journal", function* () {
    const { outcomes, wait } = yield* world
    const fiber = yield* Effect.forkChild(wait("a", 60_000))
    yield* Time.settle
    outcomes.set("a", "theirs")
    yield* Time.adjust(1_000)
    expect(yield* Fiber.join(fiber)).toBe("theirs")
  })

  test("are there for a caller that begins to wait late", function* () {
    const { ended, outcomes, wait } = yield* world
    ended.add("a")
    outcomes.set("a", "earlier")
    const fiber = yield* Effect.forkChild(wait("a", 60_000))
    yield* Time.adjust(1_000)
    expect(yield* Fiber.join(fiber)).toBe("earlier")
  })

  test("are waited for no longer than requested", function* () {
    const { wait } = yield* world
    const fiber = yield* Effect.forkChild(wait("a", 5_000))
    yield* Time.adjust(4_900)
    expect(fiber.pollUnsafe()).toBe(undefined)
    yield* Time.adjust(200)
    expect(yield* Fiber.join(fiber)).toBe(null)
  })

  test("are tried again while the store is away, unreadable, or reopened", function* () {
    for (const fault of ["store", "reopened", "unreadable"] as const) {
      const { affected, ended, faults, outcomes } = yield* world
      faults[fault] = 2
      ended.add("a")
      yield* affected(["a"])
      yield* Time.adjust(2_000)
      expect(outcomes.size).toBe(0)
      yield* Time.adjust(1_000)
      yield* Time.adjust(1_000)
      expect([fault, outcomes.get("a")]).toEqual([fault, "answer of a"])
    }
  })

  test("query the journal once for all waiters, and not without waiters", function* () {
    const { asked, wait } = yield* world
    const fibers = yield* Effect.forEach(
      Array.from({ length: 100 }, (_, at) => at),
      (at) => Effect.forkChild(wait(`r${at}`, 10_000))
    )
    yield* Time.adjust(1_000)
    yield* Time.adjust(1_000)
    expect(asked.final).toBeLessThanOrEqual(4)
    yield* Time.adjust(10_000)
    yield* Effect.forEach(fibers, Fiber.join)
    const before = asked.final
    yield* Time.adjust(60_000)
    expect(asked.final).toBe(before)
  })
})
