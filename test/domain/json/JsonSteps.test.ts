import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as JsonSteps from "../../../src/domain/json/JsonSteps.js"
import * as Steps from "../../../src/domain/primitives/Steps.js"
import { bytesInUse, MiB, textOf } from "../../support/Heap.js"
import { forAll, words } from "../generators.js"

/** So long that no text is parsed in one go. */
const blanks = " ".repeat(65_536)

const parse = (text: string, plain?: boolean) => Steps.finish(JsonSteps.parse(`${blanks}${text}`, plain))
const whole = (text: string) =>
  Result.try({ try: (): unknown => JSON.parse(text), catch: () => "it is not JSON" })

describe("JSON parsed in steps", () => {
  it("is what JSON.parse makes of it", () => {
    forAll([fc.json({ maxDepth: 6 })], (text) => {
      expect(parse(text)).toEqual(whole(text))
    })
  })

  it("with white space between its tokens as well", () => {
    forAll([fc.jsonValue()], (value) => {
      expect(parse(JSON.stringify(value, null, "\t\n"))).toEqual(whole(JSON.stringify(value)))
    })
  })

  it("is refused exactly where JSON.parse throws", () => {
    forAll(
      [fc.json(), fc.nat(), fc.constantFrom(...'[]{}:,"\\0-1.eE+tfn x\u0000\u000b\u00a0')],
      (text, place, character) => {
        const at = place % (text.length + 1)
        for (const broken of [
          text.slice(0, at) + character + text.slice(at),
          text.slice(0, at) + text.slice(at + 1),
          text.slice(0, at) + character + text.slice(at + 1)
        ])
          expect([broken, parse(broken)]).toEqual([broken, whole(broken)])
      }
    )
  })

  it.each(["", '"\n"', "1 2", ...words('01 - 1. .5 1e tru truex "\\x" [1,] {"a":1,} {a:1} [1} "')])(
    "refuses %j",
    (text) => {
      expect(parse(text)).toEqual(Result.fail("it is not JSON"))
    }
  )

  it("keeps __proto__ as data, and the last of two members of one name", () => {
    const value = Result.getOrThrow(parse('{"__proto__":{"a":1},"b":1,"b":2}'))
    expect(JSON.stringify(value)).toBe('{"__proto__":{"a":1},"b":2}')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.getOwnPropertyDescriptors(value)).toEqual(
      Object.getOwnPropertyDescriptors(JSON.parse('{"__proto__":{"a":1},"b":2}'))
    )
  })

  it("refuses what is nested deeper than any answer, and takes what is not", () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth)
    expect(Result.isSuccess(parse(nested(257)))).toBe(true)
    expect(Result.isFailure(parse(nested(258)))).toBe(true)
    expect(Result.isFailure(parse(nested(1_000_000)))).toBe(true)
  })

  it("stops after every 1,024 values, and of a short text not at all", () => {
    const stops = (text: string) => {
      const steps = JsonSteps.parse(text)
      let count = 0
      while (steps.next().done !== true) count += 1
      return count
    }
    const list = (values: number) => `[${Array.from({ length: values }, () => "1").join()}]`
    expect(stops(blanks + list(1_022))).toBe(0)
    expect(stops(blanks + list(1_023))).toBe(1)
    expect(stops(blanks + list(10 * 1_024))).toBe(10)
    expect(stops(`${list(10 * 1_024)}${" ".repeat(45_055)}`)).toBe(0)
    expect(stops(`${list(10 * 1_024)}${" ".repeat(45_056)}`)).toBe(10)
  })

  it("leaves nothing of a text in memory but the values that are kept of it", () => {
    const hash = (n: number) => n.toString(16).padStart(64, "0")
    const answer = (n: number) => `{"hash":"${hash(n)}","data":"${textOf(2 * MiB)}"}`
    const before = bytesInUse()
    const kept = Array.from({ length: 16 }, (_, n) => Object(Result.getOrThrow(parse(answer(n), true))).hash)
    const held = bytesInUse() - before
    expect(kept).toEqual(Array.from({ length: 16 }, (_, n) => hash(n)))
    expect(held).toBeLessThan(8 * MiB)
  })
})
