import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { AbiCoder } from "ethers/abi"
import * as fc from "fast-check"
import * as FunctionSignature from "../../../src/domain/abi/FunctionSignature.js"
import * as Parameters from "../../../src/domain/abi/Parameters.js"
import { forAll } from "../generators.js"
import * as generators from "./generators.js"

const oracle = AbiCoder.defaultAbiCoder()

const signature = (text: string): FunctionSignature.FunctionSignature =>
  Either.getOrThrow(FunctionSignature.parse(text))

const encode = (types: string, ...values: ReadonlyArray<unknown>): string =>
  Either.getOrThrow(Parameters.encode(signature(`f(${types})`).inputs, values))

const refusal = (types: string, ...values: ReadonlyArray<unknown>): Parameters.InvalidParameters =>
  Either.getOrThrow(Either.flip(Parameters.encode(signature(`f(${types})`).inputs, values)))

const checksummed = "0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789"

describe("Parameters", () => {
  it.each<[string, unknown, unknown]>([
    ["uint256", "0", 0n],
    ["uint256", "0x0", 0n],
    ["uint256", "0x00ff", 255n],
    ["uint256", "0xFf", 255n],
    ["uint8", "255", 255n],
    ["uint256", (2n ** 256n - 1n).toString(), 2n ** 256n - 1n],
    ["int8", "-128", -128n],
    ["int8", "127", 127n],
    ["int8", "0x7f", 127n],
    ["int256", (-(2n ** 255n)).toString(), -(2n ** 255n)],
    ["address", checksummed, checksummed],
    ["address", checksummed.toLowerCase(), checksummed],
    ["address", `0x${checksummed.slice(2).toUpperCase()}`, checksummed],
    ["bool", "true", true],
    ["bool", "false", false],
    ["bytes", "0x", "0x"],
    ["bytes", "0xABcd", "0xabcd"],
    ["bytes4", "0xA9059cbb", "0xa9059cbb"],
    ["string", "", ""],
    ["string", 'plain text, "quoted" [1]', 'plain text, "quoted" [1]'],
    ["string", "\ufeff\u0000\u{1f3f0}", "\ufeff\u0000\u{1f3f0}"],
    ["string", " 1", " 1"],
    ["uint256[]", '["1","2"]', [1n, 2n]],
    ["uint256[]", "[]", []],
    ["uint256[]", ' [ 1 , "0x2" , 9007199254740991 ] ', [1n, 2n, 9007199254740991n]],
    ["int8[]", "[-1]", [-1n]],
    ["uint256[]", ["1", "2"], [1n, 2n]],
    ["uint256[]", [1, 2], [1n, 2n]],
    [
      "uint8[2][]",
      '[["1","2"],["3","4"]]',
      [
        [1n, 2n],
        [3n, 4n]
      ]
    ],
    ["bool[]", '[true,"false"]', [true, false]],
    ["string[]", '["1.5","1e3","-0","\\"2.5\\\\"]', ["1.5", "1e3", "-0", '"2.5\\']],
    ["string[]", ["a", "\u00e9"], ["a", "\u00e9"]],
    ["(address,uint256)", `["${checksummed}","5"]`, [checksummed, 5n]],
    ["(address to, uint256 n)", `{"n":"5","to":"${checksummed}"}`, [checksummed, 5n]],
    [
      "(address to, uint256 n)[]",
      [{ n: "5", to: checksummed }, [checksummed, "6"]],
      [
        [checksummed, 5n],
        [checksummed, 6n]
      ]
    ],
    [
      "(bytes __proto__, (bool constructor) x)",
      '{"__proto__":"0x01","x":{"constructor":true}}',
      ["0x01", [true]]
    ]
  ])("%s takes %j", (type, given, expected) => {
    const { inputs } = signature(`f(${type})`)
    expect(encode(type, given)).toBe(oracle.encode([inputs[0]?.type ?? ""], [expected]))
  })

  const misfits: ReadonlyArray<readonly [type: string, given: unknown, why: string]> = [
    ...[
      "",
      "1.5",
      "1e3",
      " 1",
      "1 ",
      "1\n",
      "+1",
      "-1",
      "01",
      "0x",
      "0X1",
      "1_000",
      "1n",
      "\u0661",
      "NaN"
    ].map((given) => ["uint256", given, "non-negative integer"] as const),
    ["uint256", (2n ** 256n).toString(), "fit"],
    ["uint256", `0x1${"0".repeat(64)}`, "the integer does not fit uint256"],
    ["uint256", "9".repeat(100_000), "the integer does not fit uint256"],
    ["uint256", `1${"0".repeat(80)}`, "the integer does not fit uint256"],
    ["int128", `-1${"0".repeat(80)}`, "the integer does not fit int128"],
    [
      "int128",
      "\u22125",
      'expected an integer as a decimal or 0x-hex string, got "\u22125", with the character U+2212'
    ],
    ["uint256", "1 ether", "wei"],
    ["int256", "-1.5", "wei"],
    ["address[]", "[0x0e5C4C27eAD9083C756Cc2]", 'for example ["0x0000000000000000000000000000000000000001"]'],
    ["uint256[]", "1,2", 'expected JSON text, for example ["1"]'],
    ["uint256[2]", "1e5,2", 'expected JSON text, for example ["1","1"]'],
    [
      "(bool,(bytes4,string)[],bytes,int8)",
      "(true,",
      'for example [true,[["0x00000000","text"]],"0x12ab","1"]'
    ],
    ["uint256[][][][][][]", "7", 'expected a JSON array, got a number, for example [[[[[["1"]]]]]]'],
    ["bytes[200][200][200][200]", "", "expected JSON text"],
    ["(address to,uint256 amount)", '{"To":"0x","amount":"1"}', 'no component "To"; did you mean to?'],
    ["uint8", "256", "fit"],
    ["uint8", "0x100", "fit"],
    ["int8", "128", "fit"],
    ["int8", "0x80", "fit"],
    ["int8", "-129", "fit"],
    ...["-0", "-01", "-0x1", "--1", "- 1"].map((given) => ["int8", given, "integer"] as const),
    ["int256", (2n ** 255n).toString(), "fit"],
    ["int256", (-(2n ** 255n) - 1n).toString(), "fit"],
    ["int256", `0x${"f".repeat(64)}`, "fit"],
    ["uint256", 1, "expected a string, got a number"],
    ["uint256", true, "expected a string, got a boolean"],
    ["uint256", null, "expected a string, got null"],
    ["uint256", undefined, "expected a string, got nothing"],
    ["uint256", ["1"], "expected a string, got an array"],
    ["uint256", 1n, "expected a string, got a bigint"],
    ["address", checksummed.replace("F", "f"), "EIP-55"],
    ...[checksummed.slice(2), `${checksummed}00`, ` ${checksummed}`, `0X${checksummed.slice(2)}`, ""].map(
      (given) => ["address", given, "expected an address"] as const
    ),
    ["address", "XE7338O073KYGTWWZN0F2WZ0R8PX5ZPPZS", "expected an address"],
    ["address", "vitalik.eth", "expected an address"],
    ...["1", "True", ""].map((given) => ["bool", given, "expected true or false"] as const),
    ["bool", true, "expected a string, got a boolean"],
    ...["", "0x0", "0xzz", "abcd", "0xab\n"].map((given) => ["bytes", given, "0x"] as const),
    ["bytes4", "0xa9059c", "exactly 4 bytes"],
    ["bytes4", "0xa9059cbb00", "exactly 4 bytes"],
    ["bytes32", "0x", "exactly 32 bytes"],
    ["string", "\ud800", "well-formed"],
    ["string", 5, "expected a string"],
    ["string[]", ["ok", "\udfff!"], "element 1: the text is not well-formed"],
    ...["", "1,2", "[1,]", "['1']", "[01]", "[".repeat(100_000)].map(
      (given) => ["uint256[]", given, "expected JSON text"] as const
    ),
    ["uint256[]", `${"[".repeat(50_000)}${"]".repeat(50_000)}`, "element 0: expected a string, got an array"],
    ["uint256[]", "5", "expected a JSON array, got a number"],
    ["uint256[]", '"5"', "expected a JSON array, got a string"],
    ["uint256[]", "null", "expected a JSON array, got null"],
    ["uint256[]", "{}", "expected a JSON array, got an object"],
    ["uint256[]", 5, "expected a JSON array, got a number"],
    ["uint256[]", null, "expected a JSON array, got null"],
    [
      "uint256[]",
      "[9007199254740993]",
      "element 0: a JSON number must be an integer below 2^53: write it as a string"
    ],
    ...["992]", "993]"].map((end) => ["uint256[]", `[9007199254740${end}`, "write it as a string"] as const),
    ...[
      "[1.5]",
      "[1.0]",
      "[1.00000000000000000000001]",
      "[1e3]",
      "[1E+3]",
      "[-0]",
      "[1e999]",
      [1.5],
      [2 ** 53]
    ].map((given) => ["uint256[]", given, "write it as a string"] as const),
    ["uint256[]", [-0], "write it as a string"],
    ["uint256[]", [Number.NaN], "write it as a string"],
    ["(uint256 a)", '{"a":1,"a":2}', "a name occurs twice in one JSON object"],
    ["(uint256 a)", '{"a":1,"\\u0061":2}', "a name occurs twice"],
    ["(uint256 a)[]", '[{"a":1},{"a":1,"a":1}]', "a name occurs twice"],
    ["(uint256 a,(string b) c)", '{"c":{"b":"x","a":"y"},"c":{"b":"z"},"a":1}', "a name occurs twice"],
    ["uint256[]", [-1], "element 0: "],
    ["uint256[]", [null], "element 0: expected a string, got null"],
    ["uint256[]", [true], "element 0: expected a string, got a boolean"],
    ["uint256[]", new Array(2), "element 0: expected a string"],
    ["uint256[][]", ["[1]"], "element 0: expected a JSON array, got a string"],
    ["address[]", [0], "element 0: expected a string, got a number"],
    ["bool[]", [1], "element 0: expected a string, got a number"],
    ["uint8[2]", '["1"]', "expected 2 elements, got 1"],
    ["uint8[2]", '["1","2","3"]', "expected 2 elements, got 3"],
    ["uint8[2][1]", '[["1","256"]]', "element 0: element 1: the integer does not fit uint8"],
    ["(bool,bool)", "[true]", "expected 2 components, got 1"],
    ["(bool,bool)", "[true,true,true]", "expected 2 components, got 3"],
    ["(bool,bool)", '{"a":true,"b":true}', "have no distinct names"],
    ["(bool a,bool a)", '{"a":true}', "have no distinct names"],
    ["(bool a,bool b)", '{"a":true}', "the component b is missing"],
    ["(bool a,bool b)", '{"a":true,"b":true,"c":true}', 'there is no component "c"'],
    ["(bool a,bool toString)", '{"a":true}', "the component toString is missing"],
    ["(bool a,bool __proto__)", '{"a":true}', "the component __proto__ is missing"],
    ["(bool a,bool b)", "true", "expected a JSON array or object, got a boolean"],
    ["(bool a,bool b)", 5, "expected a JSON array or object, got a number"],
    [
      "(bool a,(uint8 b)[] c)[]",
      '[{"a":true,"c":[["1"],{"b":"300"}]}]',
      "element 0: c: element 1: b: the integer does not fit uint8"
    ],
    ["(bool a,uint8)", '[true,"300"]', "component 1: the integer does not fit uint8"]
  ]

  it.each(misfits.map(([type, given, why]) => [type, why, given] as const))(
    "%s refuses a value: %s",
    (type, why, given) => {
      const { index, message } = refusal(`bool,${type}`, "true", given)
      const canonical = signature(`f(${type})`).inputs[0]?.type ?? ""
      expect(index).toBe(1)
      expect(message.startsWith(`invalid function parameter 1 (${canonical}): `)).toBe(true)
      expect(message).toContain(why)
      expect(message.length).toBeLessThan(300)
    }
  )

  it("a wrong number of values says which types are expected", () => {
    const { index, message } = refusal("address,uint256", checksummed)
    expect(index).toBeNull()
    expect(message).toBe("invalid function parameters: expected 2 (address,uint256), got 1")
    expect(refusal("", "1").message).toBe("invalid function parameters: expected 0 (), got 1")
  })

  it("calldata begin with the selector, and receive() has none", () => {
    expect(
      Either.getOrThrow(Parameters.encodeCall(signature("transfer(address,uint)"), [checksummed, "1"]))
    ).toBe(`0xa9059cbb${oracle.encode(["address", "uint256"], [checksummed, 1n]).slice(2)}`)
    expect(Either.getOrThrow(Parameters.encodeCall(signature("f()"), []))).toBe("0x26121ff0")
    expect(Either.getOrThrow(Parameters.encodeCall(signature("receive()"), []))).toBe("0x")
    expect(Either.isLeft(Parameters.encodeCall(signature("receive()"), ["1"]))).toBe(true)
  })

  it("long texts and lists are encoded whole", () => {
    const text = 'a\\"\u00e9\n'.repeat(50_000)
    expect(encode("string", text)).toBe(oracle.encode(["string"], [text]))
    expect(encode("string[]", JSON.stringify([text]))).toBe(oracle.encode(["string[]"], [[text]]))
    expect(encode("bytes", `0x${"ab".repeat(500_000)}`)).toHaveLength(2 + 128 + 1_000_000)
    const numbers = Array.from({ length: 20_000 }, (_, i) => String(i))
    expect(encode("uint256[]", JSON.stringify(numbers))).toBe(oracle.encode(["uint256[]"], [numbers]))
  })

  it.prop(
    "any values of any types are encoded as ethers does",
    [generators.call, fc.boolean()],
    ([{ types, values }, asText]) => {
      const { inputs } = signature(`f(${types.map(({ written }) => written).join(",")})`)
      const given = values.map((value, i) => {
        const structured = inputs[i]?.base.kind === "array" || inputs[i]?.base.kind === "tuple"
        if (structured) return asText ? JSON.stringify(value.given) : value.given
        return String(value.given)
      })
      expect(Either.getOrThrow(Parameters.encode(inputs, given))).toBe(
        oracle.encode(
          types.map(({ canonical }) => canonical),
          values.map((value) => value.oracle)
        )
      )
    },
    { fastCheck: { numRuns: 300 } }
  )

  it("any JSON is encoded or refused, and never throws", () => {
    const value = fc.oneof(fc.jsonValue(), fc.string(), fc.json(), fc.string16bits())
    forAll(
      [generators.types, fc.array(value, { maxLength: 5 })],
      (types, values) => {
        const { inputs } = signature(`f(${types.map(({ written }) => written).join(",")})`)
        const padded = inputs.map((_, i) => values[i] ?? "0")
        const result = Parameters.encode(inputs, padded)
        if (Either.isRight(result)) expect(result.right).toMatch(/^0x([0-9a-f]{64})*$/)
        else expect(result.left.message).toMatch(/^invalid function parameter [0-4] \(/)
      },
      { numRuns: 500 }
    )
  })
})
