import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as Json from "../../../src/hosts/http/Json.js"

const bounds: Json.Bounds = { maxElements: 4, maxDepth: 5 }
const wide: Json.Bounds = { maxElements: 1_000_000, maxDepth: 1_000 }
const refusal = (text: string) => Either.getOrNull(Either.flip(Json.parse(text, bounds)))

describe("strict JSON", () => {
  it.each([
    ["", "", "the body is empty"],
    [" \n", "", "the body is empty"],
    ["{", "", "the body is not one JSON document"],
    ['{"a":1}{}', "", "the body is not one JSON document"],
    ["{'a':1}", "", "the body is not one JSON document"],
    ['{"a":1,}', "", "the body is not one JSON document"],
    ["NaN", "", "the body is not one JSON document"],
    ['\ufeff{"a":1}', "", "the body is not one JSON document"],
    ['{"a":1,"a":1}', "a", "the name occurs twice in one object"],
    ['{"a":1,"\\u0061":2}', "a", "the name occurs twice in one object"],
    ['{"x":[0,{"b":{"c":1, "c" :2}}]}', "x[1].b.c", "the name occurs twice in one object"],
    ['{"__proto__":{}}', "__proto__", "the name is not allowed"],
    ['[{"\\u005f_proto__":1}]', "[0].__proto__", "the name is not allowed"]
  ])("refuses %j at %j", (text, path, message) => {
    expect(refusal(text)).toEqual({ code: "invalid_json", path, message })
  })

  it("bounds the elements of each array, wherever it stands", () => {
    expect(refusal("[1,2,3,4]")).toBeNull()
    expect(refusal("[1,2,3,4,5]")).toEqual({
      code: "invalid_request",
      path: "",
      message: "expected at most 4 elements"
    })
    expect(refusal('{"a":[[],[1,[1,2,3,4,5]]]}')?.path).toBe("a[1][1]")
    expect(refusal('{"a":[1,2,3],"b":[1,2,3],"c":{"d":1,"e":2,"f":3,"g":4,"h":5}}')).toBeNull()
  })

  it("bounds the depth before anything recursive sees the value", () => {
    expect(refusal('[[[[["x"]]]]]')).toBeNull()
    expect(refusal("[[[[[[1]]]]]]")?.message).toBe("nested more than 5 levels deep")
    expect(refusal("[".repeat(400_000) + "]".repeat(400_000))?.message).toBe("nested more than 5 levels deep")
    expect(refusal(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`)?.message).toBe(
      "nested more than 5 levels deep"
    )
  })

  it("is not misled by brackets, commas, quotes and backslashes inside of text", () => {
    expect(Json.parse('{"a":"[,{\\"a\\":1,\\\\","b":"]]]]]]","c\\"":"\\\\"}', bounds)).toEqual(
      Either.right({ a: '[,{"a":1,\\', b: "]]]]]]", 'c"': "\\" })
    )
  })

  it("repeats at most 64 characters of a caller's name", () => {
    const name = "x".repeat(10_000)
    expect(refusal(`{"${name}":1,"${name}":2}`)?.path.length).toBeLessThan(80)
  })

  it.prop("reads every document that JSON.stringify writes", [fc.jsonValue()], ([value]) => {
    const text = JSON.stringify(value)
    if (text.includes("__proto__")) return
    expect(Json.parse(text, wide)).toEqual(Either.right(JSON.parse(text)))
  })

  it.prop(
    "finds a member that was added twice, whatever stands around it",
    [fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.jsonValue(), fc.jsonValue()],
    ([others, name, first, second]) => {
      const members = Object.entries({ ...others, [name]: first }).map(
        ([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`
      )
      const text = `[{${[...members, `${JSON.stringify(name)}:${JSON.stringify(second)}`].join(",")}}]`
      expect(Either.isLeft(Json.parse(text, wide))).toBe(true)
    }
  )

  it("prints bigints as decimal strings", () => {
    expect(Json.print({ a: [1n, { b: 2n ** 80n }] })).toBe('{"a":["1",{"b":"1208925819614629174706176"}]}')
  })
})
