import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Rejection from "../../../../../src/application/lanes/worker/rules/Rejection.js"

type Standing = Rejection.Standing

const standings: ReadonlyArray<Standing> = ["clean", "suspected", "leading", "apart"]
const stateOf = (standing: Standing, lacked = 0): Rejection.State => ({ standing, lacked })

const refused = (
  rest: Partial<Omit<Extract<Rejection.Event, { _tag: "refused" }>, "_tag">>
): Rejection.Event => ({
  _tag: "refused",
  isAlone: true,
  isNewest: true,
  ...rest
})

/** Each event, and the next standing from `clean`, `suspected`, `leading` and `apart`. */
const table: ReadonlyArray<
  readonly [
    name: string,
    event: Rejection.Event,
    next: readonly [Standing, Standing, Standing, Standing],
    isRejected: boolean
  ]
> = [
  ["refused with others", refused({ isAlone: false }), ["suspected", "suspected", "apart", "apart"], false],
  ["refused separately", refused({}), ["clean", "suspected", "leading", "apart"], true],
  [
    "refused separately on an old block",
    refused({ isNewest: false }),
    ["clean", "suspected", "leading", "apart"],
    false
  ],
  ["passed separately", { _tag: "passed" }, ["clean", "leading", "leading", "apart"], false],
  [
    "unpaid with others",
    { _tag: "unpaid", isAlone: false },
    ["suspected", "suspected", "apart", "apart"],
    false
  ],
  ["unpaid separately", { _tag: "unpaid", isAlone: true }, ["clean", "suspected", "leading", "apart"], true],
  ["recorded", { _tag: "recorded" }, ["clean", "clean", "clean", "apart"], false],
  ["lacked by a transaction", { _tag: "lacked" }, ["apart", "apart", "apart", "apart"], false]
]

const event: fc.Arbitrary<Rejection.Event> = fc.constantFrom(...table.map(([, each]) => each))

describe("rejection of a component", () => {
  for (const [name, each, next, isRejected] of table)
    for (const [at, standing] of standings.entries())
      it(`${standing}, ${name}`, () => {
        const step = Rejection.step(stateOf(standing), each)
        const state = stateOf(next[at] ?? standing, each._tag === "lacked" ? 1 : 0)
        expect(step).toEqual({ state, isRejected })
      })

  it("rejects a component that three mined transactions lacked", () => {
    const lacked: Rejection.Event = { _tag: "lacked" }
    const twice = Rejection.step(Rejection.step(Rejection.clean, lacked).state, lacked)
    expect(twice.isRejected).toBe(false)
    expect(Rejection.step(twice.state, lacked)).toEqual({ state: stateOf("apart", 3), isRejected: true })
  })

  it("rejects no component because of its company", () => {
    fc.assert(
      fc.property(fc.array(event), event, (before, last) => {
        const { state } = before.reduce((step, each) => Rejection.step(step.state, each), {
          state: Rejection.clean,
          isRejected: false
        } as Rejection.Step)
        if (!Rejection.step(state, last).isRejected) return
        expect(last._tag === "lacked" || ("isAlone" in last && last.isAlone)).toBe(true)
      })
    )
  })

  it("tries a component separately after it failed with others, whatever its history", () => {
    fc.assert(
      fc.property(fc.array(event), (before) => {
        const { state } = before.reduce((step, each) => Rejection.step(step.state, each), {
          state: Rejection.clean,
          isRejected: false
        } as Rejection.Step)
        const after = Rejection.step(state, refused({ isAlone: false })).state.standing
        expect(["suspected", "apart"]).toContain(after)
      })
    )
  })

  it("halves a bundle down to one component", () => {
    expect([256, 3, 2, 1, 0].map(Rejection.halve)).toEqual([128, 1, 1, 1, 1])
  })
})
