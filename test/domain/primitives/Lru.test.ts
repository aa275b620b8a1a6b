import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Lru } from "../../../src/domain/primitives/Lru.js"
import { forAll } from "../generators.js"

describe("values in order of their use", () => {
  it("an LRU cache keeps the values last set or read, up to its size", () => {
    const lru = new Lru<string, number>(3)
    for (const [value, key] of ["a", "b", "c"].entries()) lru.set(key, value)
    expect(lru.get("a")).toBe(0)
    lru.set("d", 3)
    expect(lru.get("b")).toBeUndefined()
    expect([...lru.values()]).toEqual([2, 0, 3])
    lru.set("c", 7)
    lru.set("e", 4)
    expect([...lru.values()]).toEqual([3, 7, 4])
  })

  it("cached values are weighed again when set again", () => {
    const lru = new Lru<string, Array<number>>(4, ({ length }) => length)
    const grown = [1]
    lru.set("a", [1])
    lru.set("b", grown)
    grown.push(2, 3, 4)
    lru.set("b", grown)
    expect([lru.get("a"), lru.get("b"), lru.weight]).toEqual([undefined, grown, 4])
  })

  const use = fc.record({
    does: fc.constantFrom("get", "set", "delete"),
    key: fc.nat(5),
    value: fc.nat(12)
  })
  it("an LRU cache equals a list kept by hand", () => {
    forAll([fc.array(use), fc.nat(20)], (uses, most) => {
      const lru = new Lru<number, number>(most, (value) => value)
      let list: ReadonlyArray<readonly [number, number]> = []
      const total = () => list.reduce((sum, [, value]) => sum + value, 0)
      for (const { does, key, value } of uses) {
        const found = list.find(([of]) => of === key)
        if (does === "get") expect(lru.get(key)).toBe(found?.[1])
        else if (does === "set") lru.set(key, value)
        else lru.delete(key)
        list = list.filter((each) => each !== found)
        if (does === "get" && found !== undefined) list = [...list, found]
        if (does === "set" && value <= most) list = [...list, [key, value]]
        while (total() > most) list = list.slice(1)
        expect([...lru.values()]).toEqual(list.map(([, each]) => each))
        expect([lru.size, lru.weight]).toEqual([list.length, total()])
      }
    })
  })
})
