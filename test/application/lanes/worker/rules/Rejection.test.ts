import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Rejection from "../../../../../src/application/lanes/worker/rules/Rejection.js"

type Tag = Rejection.Standing["_tag"]

const tags: ReadonlyArray<Tag> = ["clean", "suspected", "leading", "apart"]
const standing = (_tag: Tag, lacked = 0): Rejection.State => ({ standing: { _tag }, lacked })

const refused = (
  rest: Partial<Omit<Extract<Rejection.Event, { _tag: "refused" }>, "_tag">>
): Rejection.Event => ({
  _tag: "refused",
  isAlone: true,
  isNewest: true,
  isDoubtful: false,
  ...rest
})

/** Each event, and what becomes of the standings clean, suspected, leading and apart, in this order. */
const table: ReadonlyArray<
  readonly [
    name: string,
    event: Rejection.Event,
    next: readonly [Tag, Tag, Tag, Tag],
    verdict: Rejection.Verdict
  ]
> = [
  ["refused in company", refused({ isAlone: false }), ["suspected", "suspected", "apart", "apart"], "none"],
  ["refused alone", refused({}), ["clean", "suspected", "leading", "apart"], "reject"],
  [
    "refused alone on an old block",
    refused({ isNewest: false }),
    ["clean", "suspected", "leading", "apart"],
    "none"
  ],
  [
    "refused for the chain's state",
    refused({ isDoubtful: true }),
    ["clean", "suspected", "leading", "apart"],
    "lookUp"
  ],
  [
    "refused for the chain's state in company",
    refused({ isDoubtful: true, isAlone: false }),
    ["clean", "suspected", "leading", "apart"],
    "lookUp"
  ],
  ["passed alone", { _tag: "passed", isAlone: true }, ["clean", "leading", "leading", "apart"], "none"],
  [
    "passed in company",
    { _tag: "passed", isAlone: false },
    ["clean", "suspected", "leading", "apart"],
    "none"
  ],
  [
    "unpaid in company",
    { _tag: "unpaid", isAlone: false },
    ["suspected", "suspected", "apart", "apart"],
    "none"
  ],
  ["unpaid alone", { _tag: "unpaid", isAlone: true }, ["clean", "suspected", "leading", "apart"], "reject"],
  ["recorded", { _tag: "recorded" }, ["clean", "clean", "clean", "apart"], "none"],
  ["lacked by a transaction", { _tag: "lacked" }, ["apart", "apart", "apart", "apart"], "none"]
]

const event: fc.Arbitrary<Rejection.Event> = fc.constantFrom(...table.map(([, each]) => each))

describe("rejection of a component", () => {
  for (const [name, each, next, verdict] of table)
    for (const [at, tag] of tags.entries())
      it(`${tag}, ${name}`, () => {
        const step = Rejection.step(standing(tag), each)
        expect(step).toEqual({ state: standing(next[at] ?? tag, each._tag === "lacked" ? 1 : 0), verdict })
      })

  it("rejects what three mined transactions lacked", () => {
    const lacked: Rejection.Event = { _tag: "lacked" }
    const twice = Rejection.step(Rejection.step(Rejection.clean, lacked).state, lacked)
    expect(twice.verdict).toBe("none")
    expect(Rejection.step(twice.state, lacked)).toEqual({ state: standing("apart", 3), verdict: "reject" })
  })

  it("rejects nothing for the company that it was in", () => {
    fc.assert(
      fc.property(fc.array(event), event, (before, last) => {
        const { state } = before.reduce((step, each) => Rejection.step(step.state, each), {
          state: Rejection.clean,
          verdict: "none"
        } as Rejection.Step)
        const { verdict } = Rejection.step(state, last)
        if (verdict !== "reject") return
        expect(last._tag === "lacked" || ("isAlone" in last && last.isAlone)).toBe(true)
      })
    )
  })

  it("tries a component alone that failed in company, whatever became of it before", () => {
    fc.assert(
      fc.property(fc.array(event), (before) => {
        const { state } = before.reduce((step, each) => Rejection.step(step.state, each), {
          state: Rejection.clean,
          verdict: "none"
        } as Rejection.Step)
        const after = Rejection.step(state, refused({ isAlone: false })).state.standing._tag
        expect(["suspected", "apart"]).toContain(after)
      })
    )
  })

  it("halves a bundle down to one component", () => {
    expect([256, 3, 2, 1, 0].map(Rejection.halved)).toEqual([128, 1, 1, 1, 1])
  })
})
