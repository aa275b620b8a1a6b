import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { FunctionFragment } from "ethers/abi"
import { id } from "ethers/hash"
import * as fc from "fast-check"
import * as FunctionSignature from "../../../src/domain/abi/FunctionSignature.js"
import { forAll } from "../generators.js"
import * as generators from "./generators.js"

const parsed = (text: string): FunctionSignature.FunctionSignature =>
  Result.getOrThrowWith(FunctionSignature.parse(text), (error) => new Error(`${error.message}: ${error.why}`))

const refusal = (text: string): FunctionSignature.InvalidSignature =>
  Result.getOrThrow(Result.flip(FunctionSignature.parse(text)))

describe("FunctionSignature", () => {
  it.each([
    ["transfer ( address to , uint amount )", "transfer(address,uint256)"],
    ["function transfer(address to, uint256 amount) external returns (bool)", "transfer(address,uint256)"],
    ["function transfer(address payable to, uint amount) nonpayable public", "transfer(address,uint256)"],
    ["balanceOf(address owner) view returns (uint256)", "balanceOf(address)"],
    ["totalSupply() pure external", "totalSupply()"],
    ["f(int,byte,byte[2][])", "f(int256,bytes1,bytes1[2][])"],
    ["f(tuple(uint a, tuple(bool) b)[2] calldata xs)", "f((uint256,(bool))[2])"],
    ["f(bytes memory a, string calldata b, uint[] storage c)", "f(bytes,string,uint256[])"],
    ["f(uint256[ 3 ][ ])", "f(uint256[3][])"],
    ["f(address payable[] a)", "f(address[])"],
    ["/* a */ f // b\n ( /* c */ ) // d", "f()"],
    ["f(uint256 view, bool returns, bool function)", "f(uint256,bool,bool)"],
    ["receive(uint256)", "receive(uint256)"],
    ["fallback()", "fallback()"],
    ["$_1()", "$_1()"],
    ["f(uint256 payable, address payable, address payable payable)", "f(uint256,address,address)"],
    ["f(bool memory, bytes memory, bytes memory calldata, uint8 storage)", "f(bool,bytes,bytes,uint8)"],
    ["f((bytes calldata, uint256 indexed) indexed)", "f((bytes,uint256))"],
    ["memory()", "memory()"],
    ["function f(address) constant returns (uint256)", "f(address)"],
    ["function f(address to) view returns (uint256) @12345", "f(address)"],
    ["f() @0", "f()"]
  ])("%s is %s", (text, canonical) => {
    const signature = parsed(text)
    expect(signature.canonical).toBe(canonical)
    expect(signature.selector).toBe(id(canonical).slice(0, 10))
  })

  it("parameter names, canonical types and outputs are kept", () => {
    const signature = parsed("f(uint a, (bool ok, bytes)[] b) returns (int8 c, address)")
    expect(signature.name).toBe("f")
    expect(signature.inputs.map(({ name, type }) => [name, type])).toEqual([
      ["a", "uint256"],
      ["b", "(bool,bytes)[]"]
    ])
    expect(signature.outputs?.map(({ name, type }) => [name, type])).toEqual([
      ["c", "int8"],
      ["", "address"]
    ])
    expect(parsed("f()").outputs).toBeNull()
    expect(parsed("f() returns ()").outputs).toEqual([])
  })

  it.each(["receive()", " receive ( ) ", "receive() external payable"])(
    "%s is a call with empty data",
    (text) => {
      const canonical = "receive()"
      expect(parsed(text)).toEqual({ name: "receive", inputs: [], outputs: [], canonical, selector: null })
    }
  )

  const wrong = `transfer | transfer( | transfer) | transfer(address | transfer(address,uint256))
    | transfer((address,uint256) | transfer(address,) | transfer(,address) | transfer(address uint256)
    | transfer(address to to) | transfer(address,uint256); | transfer(address;uint256)
    | transfer(address, uint256) transfer(address) | (address) | 1f() | f-g() | f(uint257) | f(uint0)
    | f(uint08) | f(uint 256) | f(uint7) | f(uint264) | f(int255) | f(bytes0) | f(bytes33) | f(bytes032)
    | f(UINT256) | f(Address) | f(fixed128x18) | f(function) | f(mapping(address => uint256))
    | f(IERC20 token) | f(()) | f(tuple()) | f(tuple) | f(tuple a) | f(uint[0]) | f(uint[-1])
    | f(uint[01]) | f(uint[1.5]) | f(uint[1e3]) | f(uint[0x2]) | f(uint[) | f(uint]) | f([])
    | f(uint indexed a) | f(uint memory a) | f(bytes memory calldata a) | f((bytes memory a) b)
    | f(uint256 payable a) | f(uint256 bool) | f() view pure | f() view view | f() external public
    | f() internal | f() private | f() constant view | f() @ | f() @ gas | f() @12 returns (bool)
    | f() virtual | f() returns | f() returns uint256 | f() returns (uint256) view
    | f() returns (uint256) returns (uint256) | function | function() | function function()
    | function (uint256) | constructor(uint256) | returns(uint256) | uint256(uint256) | event f()
    | error f() | function receive() | function receive() external payable | receive() returns (uint256)
    | receive | f() /* open | f() / 2 | f() */ | 0xa9059cbb | constructor`
  it.each([
    "",
    " ",
    "f\u00e9()",
    "f(uint\u00a0a)",
    "f(\u0000)",
    "f(\ud800)",
    "f()\u2028",
    ...wrong.split(/\s+\|\s+/)
  ])("%j is an invalid function signature", (text) => {
    const { message, why } = refusal(text)
    expect(message).toBe("invalid function signature")
    expect(why).not.toBe("")
    expect(why.length).toBeLessThan(200)
  })

  it("names are what ethers takes for names, and words that stand for one where no other meaning fits", () => {
    const names = (text: string) => parsed(text).inputs.map(({ name }) => name)
    expect(names("f(bytes memory, bytes memory memory, bool memory)")).toEqual(["", "memory", "memory"])
    expect(names("f(address payable, address payable payable, bool payable)")).toEqual([
      "",
      "payable",
      "payable"
    ])
    expect(refusal("f(address uint256)").why).toContain("is a comma missing")
  })

  it("nesting, array sizes and length are bounded", () => {
    expect(parsed(`f(uint8${"[]".repeat(16)})`).inputs[0]?.base.depth).toBe(16)
    expect(parsed(`f(${"(".repeat(16)}bool${")".repeat(16)})`).inputs).toHaveLength(1)
    expect(parsed("f(uint8[32768])").inputs[0]?.base.words).toBe(32_768)
    for (const [why, text] of [
      ["16 levels", `f(uint8${"[]".repeat(17)})`],
      ["16 levels", `f(${"(".repeat(17)}bool${")".repeat(17)})`],
      ["16 levels", `f(${"(".repeat(4000)}`],
      ["16 levels", `f(${"((".repeat(8)}uint[]${")[])".repeat(8)})`],
      ["words", "f(uint8[32769])"],
      ["words", "f(uint8[256][256])"],
      ["words", "f((uint8[20000],uint8[20000]))"],
      ["words", `f(string[${"9".repeat(400)}])`],
      ["longer than", `f(${"uint8,".repeat(2000)}uint8)`],
      ["longer than", " ".repeat(1_000_000)]
    ] as const)
      expect(refusal(text).why).toContain(why)
  })

  it("JSON fragments give the same signature as text", () => {
    const fragment = {
      type: "function",
      name: "f",
      stateMutability: "view",
      inputs: [
        {
          name: "xs",
          type: "tuple[2][]",
          internalType: "struct X[2][]",
          components: [
            { name: "to", type: "address" },
            { name: "n", type: "uint" }
          ]
        }
      ],
      outputs: [{ name: "", type: "bool" }]
    }
    expect(Result.getOrThrow(FunctionSignature.fromJson(fragment))).toEqual(
      parsed("f((address to, uint n)[2][] xs) returns (bool)")
    )
    for (const name of ["constructor", "function", "", "f(", 5, null])
      expect(Result.isFailure(FunctionSignature.fromJson({ ...fragment, name }))).toBe(true)
  })

  it("canonical signature and selector are those of ethers, for any spelling of the types", () => {
    forAll([generators.types, generators.noise], (types, blank) => {
      const text = `f${blank}(${types.map(({ written }) => `${blank}${written}`).join(",")}${blank})`
      const signature = parsed(text)
      const canonical = `f${generators.canonicalList(types)}`
      const oracle = FunctionFragment.from(`function ${canonical}`)
      expect(signature.canonical).toBe(oracle.format("sighash"))
      expect(signature.selector).toBe(oracle.selector)
      expect(parsed(canonical)).toMatchObject({ canonical, selector: oracle.selector })
    })
  })

  it("any text is a signature or a refusal, and never throws", () => {
    forAll(
      [fc.oneof(fc.fullUnicodeString(), fc.string16bits(), generators.tokenSoup)],
      (text) => {
        const result = FunctionSignature.parse(text)
        if (Result.isSuccess(result))
          expect(parsed(result.success.canonical).canonical).toBe(result.success.canonical)
        else expect(result.failure.message).toBe("invalid function signature")
      },
      { numRuns: 2_000 }
    )
  })
})
