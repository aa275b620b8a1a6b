import { describe, expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as Turns from "../../../../src/application/lanes/requests/Turns.js"
import { test } from "../../../support/Test.js"

const settled = Effect.repeat(Effect.yieldNow, { times: 20 })

/** Requests of these places; each notes when it has its turn. */
const world = () => {
  const turns = Turns.make()
  const going: Array<string> = []
  const enter = (name: string, since: number, place = "alice 1") => {
    const turn = turns(
      () => place,
      () => since
    )
    return {
      ...turn,
      name,
      go: Effect.andThen(
        turn.take,
        Effect.sync(() => void going.push(name))
      )
    }
  }
  /** All turns of the place taken. */
  const full = Effect.forEach(
    Array.from({ length: Turns.most }, (_, n) => enter(`early ${n}`, n)),
    (turn) => Effect.as(turn.go, turn)
  )
  return { enter, full, going }
}

describe("accepted requests", () => {
  test("have their turns a few at a time, the oldest first, and others' are their own", function* () {
    const { enter, full, going } = world()
    const first = yield* full
    const late = yield* Effect.forEach([7, 5, 6], (since) =>
      Effect.tap(Effect.forkChild(enter(`late ${since}`, since).go), () => settled)
    )
    const other = enter("other", 9, "bob 1")
    yield* other.go
    expect(going.slice(Turns.most)).toEqual(["other"])
    const half = first.slice(0, Turns.most / 2)
    for (const turn of half.slice(1)) yield* turn.leave
    // To leave twice gives nobody a turn.
    for (const turn of half.slice(1)) yield* turn.leave
    yield* settled
    expect(going.slice(Turns.most)).toEqual(["other"])
    // Those that wait come in together.
    yield* half[0]?.leave ?? Effect.void
    yield* Fiber.joinAll(late)
    expect(going.slice(Turns.most)).toEqual(["other", "late 5", "late 6", "late 7"])
  })

  test("that wait no longer keep no turn, nor do parts of one that wait beside each other", function* () {
    const { enter, full, going } = world()
    const first = yield* full
    const gone = yield* Effect.forkChild(enter("gone", 1).go)
    const parts = enter("parts", 2)
    const both = yield* Effect.forkChild(Effect.all([parts.go, parts.go], { concurrency: 2 }))
    yield* settled
    yield* Fiber.interrupt(gone)
    for (const turn of first) yield* turn.leave
    yield* Fiber.join(both)
    yield* parts.leave
    const again = yield* Effect.forkChild(full)
    yield* settled
    expect(again.pollUnsafe()).toBeDefined()
    expect(going.filter((name) => name === "gone")).toEqual([])
  })
})

describe("those that come in together", () => {
  test("are no more than may be in, also where one leaves at once", function* () {
    const { enter, full, going } = world()
    const first = yield* full
    const hasty = enter("hasty", 0)
    yield* Effect.forkChild(Effect.andThen(hasty.go, hasty.leave))
    yield* Effect.forEach(
      Array.from({ length: Turns.most * 2 }, (_, n) => enter(`late ${n}`, n + 1)),
      (turn) => Effect.forkChild(turn.go)
    )
    yield* settled
    for (const turn of first.slice(0, Turns.most / 2)) yield* turn.leave
    yield* settled
    // Of those in there are the other half of the first ones, and as many again: the hasty one has left.
    expect(going.slice(Turns.most)).toHaveLength(1 + Turns.most / 2 - 1)
  })
})
