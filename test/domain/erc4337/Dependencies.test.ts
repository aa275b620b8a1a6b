import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Dependencies from "../../../src/domain/erc4337/Dependencies.js"
import { forAll } from "../generators.js"

/** A forest under random names: each element depends on an earlier element or on nothing. */
const forest: fc.Arbitrary<Dependencies.Dependencies> = fc.integer({ min: 0, max: 40 }).chain((size) =>
  fc
    .tuple(
      fc.shuffledSubarray(
        Array.from({ length: size }, (_, index) => index),
        { minLength: size, maxLength: size }
      ),
      fc.array(fc.option(fc.nat(), { freq: 3 }), { minLength: size, maxLength: size })
    )
    .map(([names, draws]) => {
      const on: Array<number | null> = Array.from({ length: size }, () => null)
      for (const [place, name] of names.entries()) {
        const draw = draws[place] ?? null
        if (draw !== null && place > 0) on[name] = names[draw % place] ?? null
      }
      return on
    })
)
/** Anything that the JSON of a request may say. */
const anything: fc.Arbitrary<Dependencies.Dependencies> = fc.integer({ min: 0, max: 12 }).chain((size) =>
  fc.array(fc.option(fc.oneof(fc.integer({ min: -2, max: 14 }), fc.double())), {
    minLength: size,
    maxLength: size
  })
)

/** All elements that an element depends on, itself last; null for a cycle. */
const chainOf = (on: Dependencies.Dependencies, index: number): ReadonlyArray<number> | null => {
  const chain = [index]
  for (let at = on[index] ?? null; at !== null; at = on[at] ?? null) {
    if (chain.includes(at)) return null
    chain.unshift(at)
  }
  return chain
}

const rootOf = (on: Dependencies.Dependencies, index: number) => chainOf(on, index)?.[0]

describe("dependencies", () => {
  it("dependencies are sound when each names another element, without cycles", () => {
    forAll([anything], (on) => {
      const sound = on.every(
        (each, index) =>
          each === null || (Number.isInteger(each) && each >= 0 && each < on.length && each !== index)
      )
      const expected = sound && on.every((_, index) => chainOf(on, index) !== null)
      const checked = Dependencies.check(on)
      expect(Result.isSuccess(checked)).toBe(expected)
      if (Result.isFailure(checked)) expect(on[checked.failure.index]).not.toBeNull()
    })
  })

  it.each([
    [[null, 4, 0, 1, 3], 1, "operations depend on each other: 1 -> 4 -> 3 -> 1"],
    // Not what only leads into the cycle.
    [[1, 2, 1], 1, "operations depend on each other: 1 -> 2 -> 1"],
    ...[-1, 2, 0.5].map((on) => [[null, on], 1, "expected the index of another operation, 0 to 1"] as const),
    ...[-1, 1, 0.5].map((on) => [[on], 0, "there is no other operation on which it could depend"] as const),
    [[null, 1], 1, "an operation cannot depend on itself"]
  ] as const)("dependencies %j are refused with element and reason", (on, index, message) => {
    expect(Dependencies.check(on)).toEqual(Result.fail({ index, message }))
  })

  it("dependencies exist when one of the elements has one", () => {
    expect([[], [null, null], [null, 0], [1, null]].map(Dependencies.any)).toEqual([false, false, true, true])
    expect(Dependencies.components([])).toEqual([])
  })

  it("within some elements are those of them on each other", () => {
    const on = [null, 0, 1, 2]
    expect(Dependencies.within(on, [0, 1, 3])).toEqual([null, 0, null, null])
    expect(Dependencies.within(on, [0])).toEqual([null, null, null, null])
    expect(Dependencies.within(on, on.keys())).toEqual(on)
  })

  it("dependencies of 256 in a chain or a star are ordered and grouped", () => {
    const chain = Array.from({ length: 256 }, (_, index) => (index === 255 ? null : index + 1))
    expect(Dependencies.order(chain)).toEqual(chain.map((_, index) => 255 - index))
    const star = chain.map((_, index) => (index === 7 ? null : 7))
    expect(new Set(Dependencies.components(star))).toEqual(new Set([7]))
  })
})

describe("the order", () => {
  it("the order has every element once, behind what it depends on", () => {
    forAll([forest], (on) => {
      for (const order of [
        Dependencies.order(on),
        Dependencies.orderByTree(on),
        Dependencies.orderByDepth(on)
      ]) {
        expect([...order].sort((a, b) => a - b)).toEqual(on.map((_, index) => index))
        for (const [index, before] of on.entries())
          if (before !== null) expect(order.indexOf(before)).toBeLessThan(order.indexOf(index))
      }
    })
  })

  it("the order follows the request where dependencies allow", () => {
    forAll([forest], (on) => {
      const order = Dependencies.order(on)
      // Each place has the lowest free element.
      const done = new Set<number>()
      for (const index of order) {
        const free = on.flatMap((before, each) =>
          !done.has(each) && (before === null || done.has(before)) ? [each] : []
        )
        expect(index).toBe(Math.min(...free))
        done.add(index)
      }
    })
    expect(Dependencies.order([2, null, null])).toEqual([1, 2, 0])
  })

  it("starts by layers with the op that waits for the fewest", () => {
    const depthOf = (on: Dependencies.Dependencies, index: number): number => {
      const before = on[index] ?? null
      return before === null ? 0 : depthOf(on, before) + 1
    }
    forAll([forest], (on) => {
      const depths = Dependencies.orderByDepth(on).map((index) => depthOf(on, index))
      expect(depths).toEqual(depths.toSorted((one, other) => one - other))
    })
  })

  it("counts for some ops only the dependencies among them", () => {
    forAll([forest, fc.infiniteStream(fc.boolean())], (on, stream) => {
      const some = on.flatMap((_, index) => (stream.next().value === true ? [index] : []))
      const order = Dependencies.order(on, some)
      expect([...order].sort((a, b) => a - b)).toEqual(some)
      expect(order).toEqual(Dependencies.order(Dependencies.within(on, some), some))
    })
  })
})

describe("connected elements", () => {
  it("connected elements share one number, unique to their tree", () => {
    forAll([forest], (on) => {
      const components = Dependencies.components(on)
      for (const a of on.keys())
        for (const b of on.keys())
          expect(components[a] === components[b]).toBe(rootOf(on, a) === rootOf(on, b))
    })
  })

  it("connected elements are adjacent once gathered, groups in the order of their first", () => {
    forAll([forest], (on) => {
      const components = Dependencies.components(on)
      const gathered = Dependencies.orderByTree(on).map((index) => components[index])
      const pieces = gathered.filter((each, place) => each !== gathered[place - 1])
      expect(new Set(pieces).size).toBe(pieces.length)
      const first = [...new Set(Dependencies.order(on).map((index) => components[index]))]
      expect(pieces).toEqual(first)
    })
  })
})
