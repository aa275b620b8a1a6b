import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { FunctionFragment, Interface } from "ethers/abi"
import { id } from "ethers/hash"
import * as fc from "fast-check"
import * as UseAbi from "../../../src/domain/abi/UseAbi.js"
import { forAll } from "../generators.js"
import * as generators from "./generators.js"

const artifact = (path: string): { readonly abi: ReadonlyArray<unknown> } =>
  JSON.parse(readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8"))

describe("UseAbi", () => {
  it("fragments and human-readable definitions may be mixed, each kind stays in order", () => {
    const abi = Result.getOrThrow(
      UseAbi.parse([
        "event A(uint256 x)",
        { type: "error", name: "E", inputs: [{ name: "x", type: "uint256" }] },
        { type: "event", name: "B", inputs: [], anonymous: false },
        "error F()",
        "function f(uint256) view returns (bool)",
        { name: "g", inputs: [], outputs: [], constant: true, payable: false },
        { type: "function", name: "h", inputs: [], outputs: [], stateMutability: "view", gas: 2_300 },
        { type: "constructor", inputs: [], stateMutability: "nonpayable", payable: false },
        { type: "fallback", stateMutability: "payable" },
        { type: "receive", stateMutability: "payable" },
        "constructor(address owner) payable",
        "receive() external payable",
        "fallback() external"
      ])
    )
    expect(abi.events.map(({ canonical }) => canonical)).toEqual(["event A(uint256 x)", "event B()"])
    expect(abi.errors.map(({ canonical }) => canonical)).toEqual(["error E(uint256 x)", "error F()"])
    expect(abi.functions.map(({ canonical }) => canonical)).toEqual(["f(uint256)", "g()", "h()"])
    expect(UseAbi.parse([])).toEqual(Result.succeed(UseAbi.empty))
  })

  it.each<[string, unknown, string]>([
    ["a number", 5, "neither text nor an object"],
    ["null", null, "neither text nor an object"],
    ["a list", ["event A()"], "neither text nor an object"],
    ["text without its keyword", "A(uint256)", "begins with event, error, function or struct"],
    ["text of another kind", "enum S { a }", "begins with event, error, function or struct"],
    ["a word that begins with a keyword", "eventual()", "begins with event, error, function or struct"],
    [
      "a struct with an unknown type",
      "struct S { Unknown a; }",
      "invalid struct definition: expected a type"
    ],
    ["a struct that is cut off", "struct S { uint256 a; ", "invalid struct definition"],
    ["a struct without a semicolon", "struct S { uint256 a }", 'expected ";"'],
    ["a struct without fields", "struct S {}", "at least one component"],
    ["a struct without a name", "struct { uint256 a; }", "expected a name for a struct"],
    ["a struct that has a type's name", "struct uint8 { uint256 a; }", "invalid struct definition"],
    ["a struct that holds itself", "struct S { S[] a; }", "the struct S holds itself"],
    ["an unknown struct", "event E(Fine a)", "expected a type"],
    ["a malformed event", "event A(uint)) ", "invalid event definition"],
    ["a malformed error", "error A(uint", "invalid error definition"],
    ["a malformed function", "function f(", "invalid function signature"],
    ["an unknown type", { type: "struct", name: "S" }, "expected the type"],
    ["a type that is not a string", { type: 5 }, "expected the type"],
    ["a malformed fragment", { type: "event", name: "A", inputs: [{ type: "uint7" }] }, "inputs[0].type"],
    ["a function without a name", {}, "invalid function definition: name"]
  ])("%s is refused with its index", (_, entry, why) => {
    const result = UseAbi.parse(["event Fine()", entry])
    expect(Result.isFailure(result) && result.failure.index).toBe(1)
    expect(Result.isFailure(result) && result.failure.message).toContain(why)
  })

  it("structs stand for their tuples in every text, whatever the order", () => {
    const abi = Result.getOrThrow(
      UseAbi.parse([
        "function fill(Order[] calldata orders, Asset asset) returns (Order) @30000",
        "event Filled(Order indexed order, address by)",
        "error Bad(Asset)",
        "struct Order { address maker; Asset[2] assets; bytes data; }",
        "struct Asset(address payable, uint256 amount)"
      ])
    )
    const asset = "(address,uint256)"
    expect(abi.functions[0]?.canonical).toBe(`fill((address,${asset}[2],bytes)[],${asset})`)
    expect(abi.functions[0]?.selector).toBe(
      FunctionFragment.from(`function fill((address,${asset}[2],bytes)[],${asset})`).selector
    )
    expect(abi.events[0]?.canonical).toBe(
      "event Filled((address maker, (address, uint256 amount)[2] assets, bytes data) indexed order, address by)"
    )
    expect(abi.errors[0]?.canonical).toBe("error Bad((address, uint256 amount))")
  })

  it("a broken struct among interdependent ones is named", () => {
    const index = (list: ReadonlyArray<string>) => {
      const result = UseAbi.parse(list)
      return Result.isFailure(result) ? result.failure.index : null
    }
    expect(index(["struct A { B b; }", "event E()", "struct B { C c; }", "struct C { nothing n; }"])).toBe(3)
    expect(index(["struct A { bool a; }", "struct A { bool b; }"])).toBe(1)
    const deep = Array.from({ length: 5_000 }, (_, n) => `struct S${n} { S${n + 1} a; }`)
    expect(index([...deep, "struct S5000 { bool a; }"])).not.toBeNull()
    const wide = Array.from({ length: 14 }, (_, n) => `struct S${n} {${` S${n + 1} a;`.repeat(99)} }`)
    expect(index([...wide, "struct S14 { bytes a; }"])).not.toBeNull()
    expect(index(["struct A { bytes a; bytes b; }", `event E(${"A,".repeat(4_000)}A)`])).toBe(1)
  })

  it("parameters of old compilers and of Vyper are read, named like anything else", () => {
    const inputs = [
      { name: "calldata", type: "(address,uint256)[2]", unit: "wei" },
      { name: "uint256", type: "tuple(bool,(bytes32,string)[])", gas: 1, signature: "0x" },
      { name: "payable", type: "(bool)[]", components: [{ name: "indexed", type: "bool" }] },
      { name: "storage", type: "(bool)", components: [] }
    ]
    const { functions } = Result.getOrThrow(
      UseAbi.parse([{ type: "function", name: "address", inputs, gas: 5, signature: "0x", unit: "s" }])
    )
    const types = "(address,uint256)[2],(bool,(bytes32,string)[]),(bool)[],(bool)"
    expect(functions[0]?.selector).toBe(id(`address(${types})`).slice(0, 10))
    expect(functions[0]?.inputs.map(({ name }) => name)).toEqual(inputs.map(({ name }) => name))
  })

  it.each(["0.6", "0.7", "0.8"])("the whole ABI of EntryPoint v%s is read as ethers reads it", (version) => {
    const { abi } = artifact(
      `node_modules/@account-abstraction/contracts-v${version}/artifacts/EntryPoint.json`
    )
    const ours = Result.getOrThrow(UseAbi.parse(abi))
    const oracle = new Interface(JSON.stringify(abi))
    const theirs = { events: [] as string[], errors: [] as string[], functions: [] as string[] }
    oracle.forEachEvent(({ topicHash }) => theirs.events.push(topicHash))
    oracle.forEachError(({ selector }) => theirs.errors.push(selector))
    oracle.forEachFunction(({ selector }) => theirs.functions.push(selector))
    expect(ours.events.map(({ topic }) => topic).sort()).toEqual(theirs.events.sort())
    expect(ours.errors.map(({ selector }) => selector).sort()).toEqual(theirs.errors.sort())
    expect(ours.functions.map(({ selector }) => selector).sort()).toEqual(theirs.functions.sort())
  })

  it("any list is read or refused, and never throws", () => {
    const entry = fc.oneof(
      fc.jsonValue(),
      generators.tokenSoup,
      generators.tokenSoup.map((text) => `event ${text}`)
    )
    forAll(
      [fc.array(entry)],
      (list) => {
        const result = UseAbi.parse(list)
        if (Result.isFailure(result)) expect(list.length).toBeGreaterThan(result.failure.index)
      },
      { numRuns: 500 }
    )
  })
})
