import { describe, expect, it } from "@effect/vitest"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Json from "../../../src/domain/json/Json.js"
import { forAll, words } from "../generators.js"

const bounds: Json.Bounds = { maxElements: 4, maxDepth: 5 }
const wide: Json.Bounds = { maxElements: 1_000_000, maxDepth: 1_000 }
const refusal = (text: string) => Result.getOrNull(Result.flip(Json.parse(text, bounds)))

describe("strict JSON", () => {
  it.each([
    [" \n", "", "the body is empty"],
    ["{", "", "the body is not one JSON document: it ends too early, line 1, column 2"],
    ['\ufeff{"a":1}', "", "the body is not one JSON document: it begins with a byte order mark"],
    ['{"a":1,"a":1}', "a", "the name occurs twice in one object"],
    ['{"a":1,"\\u0061":2}', "a", "the name occurs twice in one object"],
    ['{"x":[0,{"b":{"c":1, "c" :2}}]}', "x[1].b.c", "the name occurs twice in one object"],
    ['{"__proto__":{}}', "__proto__", "the name is not allowed"],
    ['[{"\\u005f_proto__":1}]', "[0].__proto__", "the name is not allowed"]
  ])("strict JSON refuses %j at %j", (text, path, message) => {
    expect(refusal(text)).toEqual({ kind: path === "" ? "malformed" : "name", path, message })
  })

  const lost = "the JSON number would lose digits: write it as a string"

  const rounded: ReadonlyArray<readonly [string, string]> = [
    ["[9007199254740991.4]", "[0]"],
    ['{"a":[["x",4503599627370497.2]]}', "a[0][1]"],
    ["9007199254740993", ""],
    ['{"a":-9007199254740993}', "a"],
    ["[0.1000000000000000000001]", "[0]"],
    ["[1.00000000000000000000001]", "[0]"],
    ["[1e400]", "[0]"],
    ["[-1e400]", "[0]"],
    ["[1e-400]", "[0]"],
    ["[1e99999999999999999999]", "[0]"],
    ["[-0]", "[0]"],
    ["[-0.0e5]", "[0]"],
    [`{"a":1${"0".repeat(100_000)}1}`, "a"]
  ]
  it.each(rounded.map(([text, path]) => ({ text, path, start: text.slice(0, 40) })))(
    "strict JSON refuses the number of $start, which JSON.parse rounds",
    ({ path, text }) => {
      expect(refusal(text)).toEqual({ kind: "number", path, message: lost })
    }
  )

  it.each([
    ["[1.0]", "[0]"],
    ["1.0", ""],
    ["[[1e3]]", "[0][0]"],
    ['{"a":2E0}', "a"],
    ['{"percent":[50.0]}', "percent[0]"],
    ['{"percent":{"a":50.0}}', "percent.a"]
  ])("strict JSON refuses %s in place of an integer", (text, path) => {
    expect(Result.getFailure(Json.parse(text, { ...wide, decimals: new Set(["percent"]) }))).toEqual(
      Option.some({ kind: "number", path, message: "the JSON number must be written as an integer" })
    )
  })

  it("strict JSON takes decimals and other non-integers where they are allowed", () => {
    const bounds = { ...wide, decimals: new Set(["percent"]) }
    for (const text of ['{"percent":50.0}', '{"percent":5e1}', '{"a":1.5}', '{"a":-12}', "[1e-3]"])
      expect(Json.parse(text, bounds)).toEqual(Result.succeed(JSON.parse(text)))
  })

  it("strict JSON takes every number that parses exactly", () => {
    const texts = words(
      `0 -1 1.0 50.10 1e3 1E+3 0.5e1 9007199254740991 9007199254740992 0.30000000000000004 1e21 5e-324 0e99
      0.0001 1${"0".repeat(300)}`
    )
    for (const text of texts)
      expect([text, Json.parse(`[${text}]`, wide)]).toEqual([text, Result.succeed([Number(text)])])
  })

  it("strict JSON takes integers below 2^53, and none that JSON.parse would change", () => {
    forAll([fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n })], (integer) => {
      const taken = Result.isSuccess(Json.parse(String(integer), wide))
      if (Number.isSafeInteger(Number(integer))) expect(taken).toBe(true)
      if (BigInt(Number(integer)) !== integer) expect(taken).toBe(false)
    })
  })

  it("strict JSON bounds the elements of each array, at any depth", () => {
    expect(refusal("[1,2,3,4]")).toBeNull()
    expect(refusal("[1,2,3,4,5]")).toEqual({
      kind: "bounds",
      path: "",
      message: "expected at most 4 elements"
    })
    expect(refusal('{"a":[[],[1,[1,2,3,4,5]]]}')?.path).toBe("a[1][1]")
    expect(refusal('{"a":[1,2,3],"b":[1,2,3],"c":{"d":1,"e":2,"f":3,"g":4,"h":5}}')).toBeNull()
  })

  it("strict JSON bounds the members of one object", () => {
    const refused = (text: string) =>
      Result.getOrNull(Result.flip(Json.parse(text, { ...bounds, maxMembers: 2 })))
    expect(refused('{"a":1,"b":{"c":1,"d":2}}')).toBeNull()
    expect(refused('{"a":1,"b":{"c":1,"d":2,"\\u0065":3}}')).toEqual({
      kind: "bounds",
      path: "b",
      message: "expected at most 2 members"
    })
  })

  it("lets one array at the top be longer or shorter than others", () => {
    const refused = (text: string, maxElements: number) => {
      const read = Json.parse(text, { ...bounds, longest: { name: "a", maxElements } })
      return Result.match(read, {
        onFailure: ({ message, path }) => `${path}: ${message}`,
        onSuccess: () => null
      })
    }
    for (const [text, most, expected] of [
      ['{"a":[1,2,3,4,5,6]}', 6, null],
      ['{"a":[1,2,3,4,5,6,7]}', 6, "a: expected at most 6 elements"],
      ['{"b":[1,2,3,4,5]}', 6, "b: expected at most 4 elements"],
      ['{"a":[[1,2,3,4,5]]}', 6, "a[0]: expected at most 4 elements"],
      ['{"b":{"a":[1,2,3,4,5]}}', 6, "b.a: expected at most 4 elements"],
      ["[1,2,3,4,5]", 6, ": expected at most 4 elements"],
      ['{"a":[1,2],"b":[1,2,3,4]}', 2, null],
      ['{"a":[1,2,3]}', 2, "a: expected at most 2 elements"]
    ] as const)
      expect(refused(text, most)).toBe(expected)
  })

  it("strict JSON bounds the values of a text as a whole, before it is parsed", () => {
    const counted = (text: string, maxValues: number) =>
      Result.getOrNull(Result.flip(Json.parse(text, { ...wide, maxValues })))
    expect(counted('{"a":[1,2,{"b":3}]}', 6)).toBeNull()
    expect(counted('{"a":[1,2,{"b":3}]}', 5)).not.toBeNull()
    expect(counted("[1,2,3", 3)).toEqual({
      kind: "bounds",
      path: "",
      message: "expected at most 3 values in all"
    })
  })

  it("strict JSON counts one value plus one per comma, array and object", () => {
    forAll([fc.jsonValue(), fc.string()], (value, odd) => {
      const beyondFirst = (of: unknown): number => {
        if (typeof of !== "object" || of === null) return 0
        const parts: ReadonlyArray<unknown> = Object.values(of)
        return parts.reduce((sum: number, part) => sum + beyondFirst(part), 1 + Math.max(0, parts.length - 1))
      }
      const whole = { [`${odd}"\\`]: value, '\\"[,{': `${odd}\\,` }
      const count = 1 + beyondFirst(whole)
      for (const text of [JSON.stringify(whole), JSON.stringify(whole, null, 1)]) {
        expect(Json.holdsMore(text, count)).toBe(false)
        expect(Json.holdsMore(text, count - 1)).toBe(true)
      }
    })
  })

  it("counting includes invalid JSON, and stops at a quote that never closes", () => {
    for (const [text, values] of [
      ["", 1],
      [",,[{", 5],
      [']},",,,,', 2],
      ['"\\\\",', 2]
    ] as const)
      expect([Json.holdsMore(text, values - 1), Json.holdsMore(text, values)]).toEqual([true, false])
  })

  it("strict JSON paths have plain names for words, and quoted names otherwise", () => {
    const long = "x".repeat(64)
    for (const [path, name, expected] of [
      ["", "a", "a"],
      ["a", "b$1", "a.b$1"],
      ["a", "b c", 'a["b c"]'],
      ["a", "1", 'a["1"]'],
      ["a", long, `a.${long}`],
      ["a", `-${long.slice(1)}`, `a["-${long.slice(1)}"]`],
      ["a", `${long}x`, `a["${long}..."]`]
    ] as const)
      expect(Json.member(path, name)).toBe(expected)
  })

  it("strict JSON bounds the depth before anything recursive sees the value", () => {
    expect(refusal('[[[[["x"]]]]]')).toBeNull()
    expect(refusal("[[[[[[1]]]]]]")?.message).toBe("nested more than 5 levels deep")
    expect(refusal("[".repeat(400_000) + "]".repeat(400_000))?.message).toBe("nested more than 5 levels deep")
    expect(refusal(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`)?.message).toBe(
      "nested more than 5 levels deep"
    )
  })

  it("strict JSON handles brackets, commas, quotes and backslashes inside strings", () => {
    expect(Json.parse('{"a":"[,{\\"a\\":1,\\\\","b":"]]]]]]","c\\"":"\\\\"}', bounds)).toEqual(
      Result.succeed({ a: '[,{"a":1,\\', b: "]]]]]]", 'c"': "\\" })
    )
  })

  it("strict JSON reads every document that JSON.stringify writes", () => {
    forAll([fc.jsonValue()], (value) => {
      const text = JSON.stringify(value)
      if (text.includes("__proto__")) return
      expect(Json.parse(text, wide)).toEqual(Result.succeed(JSON.parse(text)))
    })
  })

  it("strict JSON finds a duplicate member in any document", () => {
    forAll(
      [fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.jsonValue(), fc.jsonValue()],
      (others, name, first, second) => {
        const members = Object.entries({ ...others, [name]: first }).map(
          ([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`
        )
        const text = `[{${[...members, `${JSON.stringify(name)}:${JSON.stringify(second)}`].join(",")}}]`
        expect(Result.isFailure(Json.parse(text, wide))).toBe(true)
      }
    )
  })

  it("prints bigints as decimal strings", () => {
    expect(Json.print({ a: [1n, { b: 2n ** 80n }] })).toBe('{"a":["1",{"b":"1208925819614629174706176"}]}')
  })
})
