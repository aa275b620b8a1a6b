import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder } from "ethers/abi"
import * as fc from "fast-check"
import * as FunctionSignature from "../../../src/domain/abi/FunctionSignature.js"
import * as Parameters from "../../../src/domain/abi/Parameters.js"
import { forAll } from "../generators.js"
import * as generators from "./generators.js"

const oracle = AbiCoder.defaultAbiCoder()

const signature = (text: string): FunctionSignature.FunctionSignature =>
  Result.getOrThrow(FunctionSignature.parse(text))

const encode = (types: string, ...values: ReadonlyArray<unknown>): string =>
  Result.getOrThrow(Parameters.encode(signature(`f(${types})`).inputs, values))

const refusal = (types: string, ...values: ReadonlyArray<unknown>): Parameters.InvalidParameters =>
  Result.getOrThrow(Result.flip(Parameters.encode(signature(`f(${types})`).inputs, values)))

const checksummed = "0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789"

describe("Parameters", () => {
  it.each<[type: string, value: unknown, ...given: Array<unknown>]>([
    ["uint256", 0n, "0", "0x0"],
    ["uint256", 255n, "0x00ff", "0xFf"],
    ["uint8", 255n, "255"],
    ["uint256", 2n ** 256n - 1n, String(2n ** 256n - 1n)],
    ["int8", -128n, "-128"],
    ["int8", 127n, "127", "0x7f"],
    ["int256", -(2n ** 255n), String(-(2n ** 255n))],
    ["address", checksummed, checksummed, checksummed.toLowerCase()],
    ["address", checksummed, `0x${checksummed.slice(2).toUpperCase()}`],
    ["bool", true, "true"],
    ["bool", false, "false"],
    ["bytes", "0x", "0x"],
    ["bytes", "0xabcd", "0xABcd"],
    ["bytes4", "0xa9059cbb", "0xA9059cbb"],
    ...["", 'plain text, "quoted" [1]', "\ufeff\u0000\u{1f3f0}", " 1"].map(
      (text): [string, string, string] => ["string", text, text]
    ),
    ["uint256[]", [1n, 2n], '["1","2"]', ["1", "2"], [1, 2]],
    ["uint256[]", [], "[]"],
    ["uint256[]", [1n, 2n, 9007199254740991n], ' [ 1 , "0x2" , 9007199254740991 ] '],
    ["int8[]", [-1n], "[-1]"],
    [
      "uint8[2][]",
      [
        ["1", "2"],
        ["3", "4"]
      ],
      '[["1","2"],["3","4"]]'
    ],
    ["bool[]", [true, false], '[true,"false"]'],
    ["string[]", ["1.5", "1e3", "-0", '"2.5\\'], '["1.5","1e3","-0","\\"2.5\\\\"]'],
    ["string[]", ["a", "\u00e9"], ["a", "\u00e9"]],
    ["(address,uint256)", [checksummed, 5n], `["${checksummed}","5"]`],
    ["(address to, uint256 n)", [checksummed, 5n], `{"n":"5","to":"${checksummed}"}`],
    [
      "(address to, uint256 n)[]",
      [
        [checksummed, 5n],
        [checksummed, 6n]
      ],
      [{ n: "5", to: checksummed }, [checksummed, "6"]]
    ],
    [
      "(bytes __proto__, (bool constructor) x)",
      ["0x01", [true]],
      '{"__proto__":"0x01","x":{"constructor":true}}'
    ]
  ])("%s takes %s", (type, value, ...given) => {
    const { inputs } = signature(`f(${type})`)
    for (const each of given) expect(encode(type, each)).toBe(oracle.encode([inputs[0]?.type ?? ""], [value]))
  })

  const fits = "expected an integer"
  it.each<[type: string, why: string, ...given: Array<unknown>]>([
    ["uint256", "non-negative integer", "", "1.5", "1e3", " 1", "1 ", "1\n", "+1", "-1", "01", "0x", "0X1"],
    ["uint256", "non-negative integer", "1_000", "1n", "\u0661", "NaN"],
    ["uint256", "the integer does not fit uint256", String(2n ** 256n), `0x1${"0".repeat(64)}`],
    ["uint256", "the integer does not fit uint256", "9".repeat(100_000), `1${"0".repeat(80)}`],
    ["int128", "the integer does not fit int128", `-1${"0".repeat(80)}`],
    ["int128", `${fits} as a decimal or 0x-hex string, got "\u22125", with the character U+2212`, "\u22125"],
    ["uint256", "wei", "1 ether"],
    ["int256", "wei", "-1.5"],
    ["uint8", "fit", "256", "0x100"],
    ["int8", "fit", "128", "0x80", "-129"],
    ["int8", "integer", "-0", "-01", "-0x1", "--1", "- 1"],
    ["int256", "fit", String(2n ** 255n), String(-(2n ** 255n) - 1n), `0x${"f".repeat(64)}`],
    ["address[]", 'for example ["0x0000000000000000000000000000000000000001"]', "[0x0e5C4C27eAD9083C756Cc2]"],
    ["uint256[]", 'expected JSON text, for example ["1"]', "1,2"],
    ["uint256[2]", 'expected JSON text, for example ["1","1"]', "1e5,2"],
    [
      "(bool,(bytes4,string)[],bytes,int8)",
      'for example [true,[["0x00000000","text"]],"0x12ab","1"]',
      "(true,"
    ],
    ["uint256[][][][][][]", 'expected a JSON array, got a number, for example [[[[[["1"]]]]]]', "7"],
    ["bytes[200][200][200][200]", "expected JSON text", ""],
    ["(address to,uint256 amount)", 'no component "To"; did you mean to?', '{"To":"0x","amount":"1"}'],
    ["uint256", "expected a string, got a number", 1],
    ["uint256", "expected a string, got a boolean", true],
    ["uint256", "expected a string, got null", null],
    ["uint256", "expected a string, got nothing", undefined],
    ["uint256", "expected a string, got an array", ["1"]],
    ["uint256", "expected a string, got a bigint", 1n],
    ["address", "EIP-55", checksummed.replace("F", "f")],
    ["address", "expected an address", checksummed.slice(2), `${checksummed}00`, ` ${checksummed}`, ""],
    ["address", "expected an address", `0X${checksummed.slice(2)}`, "vitalik.eth"],
    ["address", "expected an address", "XE7338O073KYGTWWZN0F2WZ0R8PX5ZPPZS"],
    ["bool", "expected true or false", "1", "True", ""],
    ["bool", "expected a string, got a boolean", true],
    ["bytes", "0x", "", "0x0", "0xzz", "abcd", "0xab\n"],
    ["bytes4", "exactly 4 bytes", "0xa9059c", "0xa9059cbb00"],
    ["bytes32", "exactly 32 bytes", "0x"],
    ["string", "well-formed", "\ud800"],
    ["string", "expected a string", 5],
    ["string[]", "element 1: the text is not well-formed", ["ok", "\udfff!"]],
    ["uint256[]", "expected JSON text", "", "1,2", "[1,]", "['1']", "[01]", "[".repeat(100_000)],
    ["uint256[]", "element 0: expected a string, got an array", `${"[".repeat(50_000)}${"]".repeat(50_000)}`],
    ["uint256[]", "expected a JSON array, got a number", "5", 5],
    ["uint256[]", "expected a JSON array, got a string", '"5"'],
    ["uint256[]", "expected a JSON array, got null", "null", null],
    ["uint256[]", "expected a JSON array, got an object", "{}"],
    [
      "uint256[]",
      "a JSON number must be an integer below 2^53: write it as a string",
      ...["[9007199254740993]", "[9007199254740992]", "[1.5]", "[1.0]", "[1.00000000000000000000001]"],
      ...["[1e3]", "[1E+3]", "[-0]", "[1e999]", [1.5], [2 ** 53], [-0], [Number.NaN]]
    ],
    ["(uint256 a)", "a name occurs twice in one JSON object", '{"a":1,"a":2}', '{"a":1,"\\u0061":2}'],
    ["(uint256 a)[]", "a name occurs twice", '[{"a":1},{"a":1,"a":1}]'],
    ["(uint256 a,(string b) c)", "a name occurs twice", '{"c":{"b":"x","a":"y"},"c":{"b":"z"},"a":1}'],
    ["uint256[]", "element 0: ", [-1], "[9007199254740993]"],
    ["uint256[]", "element 0: expected a string", [null], [true], new Array(2)],
    ["uint256[][]", "element 0: expected a JSON array, got a string", ["[1]"]],
    ["address[]", "element 0: expected a string, got a number", [0]],
    ["bool[]", "element 0: expected a string, got a number", [1]],
    ["uint8[2]", "expected 2 elements, got 1", '["1"]'],
    ["uint8[2]", "expected 2 elements, got 3", '["1","2","3"]'],
    ["uint8[2][1]", "element 0: element 1: the integer does not fit uint8", '[["1","256"]]'],
    ["(bool,bool)", "expected 2 components, got 1", "[true]"],
    ["(bool,bool)", "expected 2 components, got 3", "[true,true,true]"],
    ["(bool,bool)", "have no distinct names", '{"a":true,"b":true}'],
    ["(bool a,bool a)", "have no distinct names", '{"a":true}'],
    ["(bool a,bool b)", "the component b is missing", '{"a":true}'],
    ["(bool a,bool b)", 'there is no component "c"', '{"a":true,"b":true,"c":true}'],
    ["(bool a,bool toString)", "the component toString is missing", '{"a":true}'],
    ["(bool a,bool __proto__)", "the component __proto__ is missing", '{"a":true}'],
    ["(bool a,bool b)", "expected a JSON array or object, got a boolean", "true"],
    ["(bool a,bool b)", "expected a JSON array or object, got a number", 5],
    [
      "(bool a,(uint8 b)[] c)[]",
      "element 0: c: element 1: b: the integer does not fit uint8",
      '[{"a":true,"c":[["1"],{"b":"300"}]}]'
    ],
    ["(bool a,uint8)", "component 1: the integer does not fit uint8", '[true,"300"]']
  ])("%s refuses a value: %s", (type, why, ...given) => {
    const canonical = signature(`f(${type})`).inputs[0]?.type ?? ""
    for (const each of given) {
      const { index, message } = refusal(`bool,${type}`, "true", each)
      expect(index).toBe(1)
      expect(message.startsWith(`invalid function parameter 1 (${canonical}): `)).toBe(true)
      expect(message).toContain(why)
      expect(message.length).toBeLessThan(300)
    }
  })

  it("a wrong number of values says which types are expected", () => {
    const { index, message } = refusal("address,uint256", checksummed)
    expect(index).toBeNull()
    expect(message).toBe("invalid function parameters: expected 2 (address,uint256), got 1")
    expect(refusal("", "1").message).toBe("invalid function parameters: expected 0 (), got 1")
  })

  it("calldata begin with the selector, and receive() has none", () => {
    expect(
      Result.getOrThrow(Parameters.encodeCall(signature("transfer(address,uint)"), [checksummed, "1"]))
    ).toBe(`0xa9059cbb${oracle.encode(["address", "uint256"], [checksummed, 1n]).slice(2)}`)
    expect(Result.getOrThrow(Parameters.encodeCall(signature("f()"), []))).toBe("0x26121ff0")
    expect(Result.getOrThrow(Parameters.encodeCall(signature("receive()"), []))).toBe("0x")
    expect(Result.isFailure(Parameters.encodeCall(signature("receive()"), ["1"]))).toBe(true)
  })

  it("long strings and lists are encoded whole", () => {
    const text = 'a\\"\u00e9\n'.repeat(50_000)
    expect(encode("string", text)).toBe(oracle.encode(["string"], [text]))
    expect(encode("string[]", JSON.stringify([text]))).toBe(oracle.encode(["string[]"], [[text]]))
    expect(encode("bytes", `0x${"ab".repeat(500_000)}`)).toHaveLength(2 + 128 + 1_000_000)
    const numbers = Array.from({ length: 20_000 }, (_, i) => String(i))
    expect(encode("uint256[]", JSON.stringify(numbers))).toBe(oracle.encode(["uint256[]"], [numbers]))
  })

  it("any values of any types are encoded as ethers does", () => {
    forAll(
      [generators.call, fc.boolean()],
      ({ types, values }, asText) => {
        const { inputs } = signature(`f(${types.map(({ written }) => written).join(",")})`)
        const given = values.map((value, i) => {
          const structured = inputs[i]?.base.kind === "array" || inputs[i]?.base.kind === "tuple"
          if (structured) return asText ? JSON.stringify(value.given) : value.given
          return String(value.given)
        })
        expect(Result.getOrThrow(Parameters.encode(inputs, given))).toBe(
          oracle.encode(
            types.map(({ canonical }) => canonical),
            values.map((value) => value.oracle)
          )
        )
      },
      { numRuns: 300 }
    )
  })

  it("any JSON is encoded or refused, and never throws", () => {
    const value = fc.oneof(fc.jsonValue(), fc.string(), fc.json(), fc.string16bits())
    forAll(
      [generators.types, fc.array(value, { maxLength: 5 })],
      (types, values) => {
        const { inputs } = signature(`f(${types.map(({ written }) => written).join(",")})`)
        const padded = inputs.map((_, i) => values[i] ?? "0")
        const result = Parameters.encode(inputs, padded)
        if (Result.isSuccess(result)) expect(result.success).toMatch(/^0x([0-9a-f]{64})*$/)
        else expect(result.failure.message).toMatch(/^invalid function parameter [0-4] \(/)
      },
      { numRuns: 500 }
    )
  })
})
