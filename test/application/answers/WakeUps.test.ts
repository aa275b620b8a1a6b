import { describe, expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as WakeUps from "../../../src/application/answers/WakeUps.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

/** A journal that records its queries, where events are added. */
const start = Effect.gen(function* () {
  const journal = {
    isAway: false,
    newest: new Map<string, number>(),
    asked: [] as Array<ReadonlyArray<string>>
  }
  const wakeUps = yield* WakeUps.make({
    newestEvents: (ids) =>
      Effect.suspend(() => {
        journal.asked.push([...ids])
        return journal.isAway
          ? Effect.fail(new JournalError({ message: "away" }))
          : Effect.succeed(new Map([...journal.newest].filter(([id]) => ids.includes(id))))
      })
  })
  return { journal, wakeUps }
})

/** Polls that see nothing until the state changes. */
const looking = () => {
  const state = { looks: 0, seen: null as string | null }
  const look = Effect.sync(() => {
    state.looks += 1
    return state.seen
  })
  return { state, look }
}

describe("a wait for a change of a request", () => {
  test("polls immediately, again after each change, and every 30 seconds", function* () {
    const { wakeUps } = yield* start
    const { look, state } = looking()
    const seeing = yield* Effect.forkChild(wakeUps.until("a", look))
    yield* Time.adjust(0)
    expect(state.looks).toBe(1)
    yield* wakeUps.notify(["b"])
    yield* Time.adjust(0)
    expect(state.looks).toBe(1)
    yield* wakeUps.notify(["a"])
    yield* Time.adjust(0)
    expect(state.looks).toBe(2)
    yield* Time.adjust("30 seconds")
    expect(state.looks).toBe(3)
    state.seen = "final"
    yield* wakeUps.notify(["a"])
    expect(yield* Fiber.join(seeing)).toBe("final")
  })

  test("costs one query a second for all readers in another process", function* () {
    const { journal, wakeUps } = yield* start
    yield* Time.adjust("5 seconds")
    expect(journal.asked).toEqual([])
    const [a, b] = [looking(), looking()]
    const seeing = yield* Effect.forkChild(wakeUps.until("a", a.look))
    const other = yield* Effect.forkChild(wakeUps.until("b", b.look))
    yield* Time.adjust("1 second")
    expect(journal.asked).toEqual([["a", "b"]])
    a.state.seen = "final"
    journal.newest.set("a", 1)
    yield* Time.adjust("2 seconds")
    expect(yield* Fiber.join(seeing)).toBe("final")
    expect(b.state.looks).toBe(1)
    yield* Fiber.interrupt(other)
    const { length } = journal.asked
    yield* Time.adjust("5 seconds")
    expect(journal.asked).toHaveLength(length)
  })

  test("reads each new event once, also after a journal that was away", function* () {
    const { journal, wakeUps } = yield* start
    const { look, state } = looking()
    yield* Effect.forkChild(wakeUps.until("a", look))
    journal.isAway = true
    journal.newest.set("a", 1)
    yield* Time.adjust("2 seconds")
    expect(state.looks).toBe(1)
    journal.isAway = false
    yield* Time.adjust("3 seconds")
    expect(state.looks).toBe(2)
    journal.newest.set("a", 2)
    yield* wakeUps.notifyEvents
    yield* Time.adjust("25 millis")
    expect(state.looks).toBe(3)
  })

  test("ends of requests and events wake each notifier once, however many there were", function* () {
    const { wakeUps } = yield* start
    for (const word of [wakeUps.notifyEvents, wakeUps.notify(["a"])]) {
      yield* Effect.andThen(word, word)
      yield* wakeUps.changed
      const waiting = yield* Effect.forkChild(wakeUps.changed)
      yield* Time.adjust(0)
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(waiting)
    }
  })
})
