import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as FunctionSignature from "../../../src/domain/abi/FunctionSignature.js"
import { forAll } from "../generators.js"
import * as generators from "./generators.js"

const parsed = (text: string): ReadonlyArray<readonly [string, string]> =>
  Result.getOrThrow(FunctionSignature.parseReturns(text)).map(({ name, type }) => [type, name])

describe("return types of a function", () => {
  it.each([
    ["uint256", "uint256"],
    ["uint balance", "uint256 balance"],
    ["uint256[2][]", "uint256[2][]"],
    ["(uint256)", "uint256"],
    ["(uint256,string)", "uint256; string"],
    ["uint256,string", "uint256; string"],
    ["returns (uint256 a, string b)", "uint256 a; string b"],
    ["returns(uint256 a, string memory b)", "uint256 a; string b"],
    ["((uint256,bool))", "(uint256,bool)"],
    ["tuple(uint256,bool)", "(uint256,bool)"],
    ["(tuple(uint256,bool))", "(uint256,bool)"],
    ["tuple(uint256 a,bool b) pair", "(uint256,bool) pair"],
    ["(uint256,bool)[]", "(uint256,bool)[]"],
    ["(uint256,bool) pair", "(uint256,bool) pair"],
    ["(uint256),(bool)", "(uint256); (bool)"],
    ["((uint256,bool)[],(bytes,string)[2])", "(uint256,bool)[]; (bytes,string)[2]"],
    ["()", ""],
    ["returns ()", ""]
  ])("%s are %s", (text, expected) => {
    const shown = parsed(text).map(([type, name]) => (name === "" ? type : `${type} ${name}`))
    expect(shown.join("; ")).toBe(expected)
  })

  const wrong = `returns|returns uint256|(uint256|uint256)|(uint256,)|uint256,|,|(())|tuple()|(a,b)|uint256;
    |function f()|f() returns (uint256)|uint256 indexed a|(uint256)(bool)|uint 256`
  it.each(["", ...wrong.split("|")])("%j is an invalid return signature", (text) => {
    const result = FunctionSignature.parseReturns(text)
    expect(Result.isFailure(result) && result.failure.message).toBe("invalid return signature")
  })

  it("outer parentheses are the list, inner ones a tuple", () => {
    forAll([generators.types], (types) => {
      const list = `(${types.map(({ written }) => written).join(",")})`
      const canonical = types.map((type) => [type.canonical, ""] as const)
      expect(parsed(list)).toEqual(canonical)
      expect(parsed(`returns ${list}`)).toEqual(canonical)
      if (types.length > 0) expect(parsed(`(${list})`)).toEqual([[generators.canonicalList(types), ""]])
    })
  })

  it("any text is a list of types or a refusal, and never throws", () => {
    forAll(
      [fc.oneof(fc.fullUnicodeString(), generators.tokenSoup)],
      (text) => {
        expect(Result.isResult(FunctionSignature.parseReturns(text))).toBe(true)
      },
      { numRuns: 2_000 }
    )
  })
})
