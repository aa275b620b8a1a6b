import { describe, expect } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as Claims from "../../../src/application/lanes/Claims.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

/** A process, the lanes that it owns, and what the journal says to its claims. */
const world = () => {
  const state = {
    owns: true,
    independent: [] as ReadonlyArray<string>,
    /** Of the claim; null: another process has the lane. */
    answer: 1 as number | null | "away",
    claims: [] as Array<{ readonly process: string; readonly independent: ReadonlyArray<string> }>
  }
  const claims = Claims.make(
    {
      busy: Effect.succeed([]),
      takeOver: () => Effect.void,
      claim: (_, by) =>
        Effect.suspend(() => {
          state.claims.push(by)
          return state.answer === "away"
            ? Effect.fail(new JournalError({ message: "away" }))
            : Effect.succeed(state.answer)
        })
    },
    {
      process: "this",
      owns: () => state.owns,
      independent: Effect.sync(() => state.independent),
      tell: () => Effect.void,
      assigned: Stream.never,
      heard: Stream.empty
    }
  )
  return { claims, state }
}

const other = { ...Make.lane, chainId: 137n }

describe("a lane of the process", () => {
  test("is claimed in the journal before anything is done there, for the processes that are alive", function* () {
    const { claims, state } = world()
    expect(claims.holds(Make.lane)).toBe(false)
    state.independent = ["another service"]
    expect(yield* claims.take(Make.lane)).toBe(true)
    expect(state.claims).toEqual([{ process: "this", independent: ["another service"] }])
    expect([claims.holds(Make.lane), claims.holds(other)]).toEqual([true, false])
    expect([claims.holding(Make.lane), claims.holding(other)]).toEqual([{ ...Make.lane, epoch: 1 }, null])
  })

  test("without its key is nobody's where there is no other service, and is left to one that there is", function* () {
    const { claims, state } = world()
    claims.keyed(Make.lane, false)
    expect(yield* claims.take(Make.lane)).toBe(true)
    expect(state.claims).toMatchObject([{ process: "" }])
    yield* Time.adjust(2_000)
    state.independent = ["another service"]
    expect(yield* claims.take(Make.lane)).toBe(false)
    expect([claims.holds(Make.lane), state.claims.length]).toEqual([false, 1])
    claims.keyed(Make.lane, true)
    expect(yield* claims.take(Make.lane)).toBe(true)
    expect(state.claims[1]).toMatchObject({ process: "this" })
  })

  test("is claimed again after two seconds: another process may have claimed it since", function* () {
    const { claims, state } = world()
    yield* claims.take(Make.lane)
    yield* Time.adjust(1_999)
    expect(yield* claims.take(Make.lane)).toBe(true)
    expect(state.claims).toHaveLength(1)
    state.answer = null
    yield* Time.adjust(1)
    expect(yield* claims.take(Make.lane)).toBe(false)
    expect(state.claims).toHaveLength(2)
    expect(claims.holds(Make.lane)).toBe(false)
  })

  test("that is assigned to another process is not claimed, and no more believed at once", function* () {
    const { claims, state } = world()
    yield* claims.take(Make.lane)
    state.owns = false
    expect(claims.holds(Make.lane)).toBe(false)
    expect(yield* claims.take(Make.lane)).toBe(false)
    expect(state.claims).toHaveLength(1)
    // It was another's in between: what it did there has to be fenced off first.
    state.owns = true
    expect(claims.holds(Make.lane)).toBe(false)
    expect(yield* claims.take(Make.lane)).toBe(true)
    expect(state.claims).toHaveLength(2)
  })

  test("is not worked on when the journal does not answer", function* () {
    const { claims, state } = world()
    state.answer = "away"
    expect((yield* Effect.flip(claims.take(Make.lane)))._tag).toBe("JournalError")
    expect(claims.holds(Make.lane)).toBe(false)
  })
})
