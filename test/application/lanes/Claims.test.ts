import { describe, expect } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as Claims from "../../../src/application/lanes/Claims.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

/** A process with its lanes, and the journal's answers to its claims. */
const world = () => {
  const state = {
    owns: true,
    independent: [] as ReadonlyArray<string>,
    /** Epoch of the claim; null: another process has the lane. */
    answer: 1 as number | null | "away",
    claims: [] as Array<{ readonly process: string; readonly independent: ReadonlyArray<string> }>
  }
  const claims = Claims.make(
    {
      busy: Effect.succeed([]),
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
      signals: Stream.empty
    }
  )
  return { claims, state }
}

const other = { ...Make.lane, chainId: 137n }

describe("a lane of the process", () => {
  test("is claimed in the journal before any work there, with the independent processes alive", function* () {
    const { claims, state } = world()
    expect(claims.holds(Make.lane)).toBe(false)
    state.independent = ["another service"]
    expect(yield* claims.take(Make.lane)).toBe(true)
    expect(state.claims).toEqual([{ process: "this", independent: ["another service"] }])
    expect([claims.holds(Make.lane), claims.holds(other)]).toEqual([true, false])
    expect([claims.holding(Make.lane), claims.holding(other)]).toEqual([{ ...Make.lane, epoch: 1 }, null])
  })

  test("without its key is claimed for no process while no other service runs, and is left to another service", function* () {
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

  test("is claimed again after two seconds, since another process may have claimed it", function* () {
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

  test("is neither claimed nor trusted from the moment it is assigned to another process", function* () {
    const { claims, state } = world()
    yield* claims.take(Make.lane)
    state.owns = false
    expect(claims.holds(Make.lane)).toBe(false)
    expect(yield* claims.take(Make.lane)).toBe(false)
    expect(state.claims).toHaveLength(1)
    // Another process had it in between: its writes must be fenced off first.
    state.owns = true
    expect(claims.holds(Make.lane)).toBe(false)
    expect(yield* claims.take(Make.lane)).toBe(true)
    expect(state.claims).toHaveLength(2)
  })

  test("gets no work when the journal does not answer", function* () {
    const { claims, state } = world()
    state.answer = "away"
    expect((yield* Effect.flip(claims.take(Make.lane)))._tag).toBe("JournalError")
    expect(claims.holds(Make.lane)).toBe(false)
  })
})
