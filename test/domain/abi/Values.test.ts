import { describe, expect, it } from "@effect/vitest"
import * as Outcome_ from "effect/Result"
import { AbiCoder, checkResultErrors, Result } from "ethers/abi"
import * as fc from "fast-check"
import * as FunctionSignature from "../../../src/domain/abi/FunctionSignature.js"
import * as Parameters from "../../../src/domain/abi/Parameters.js"
import * as Values from "../../../src/domain/abi/Values.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Work from "../../support/Work.js"
import { forAll, hex } from "../generators.js"
import * as generators from "./generators.js"

const oracle = AbiCoder.defaultAbiCoder()

const word = (value: bigint | number): string =>
  BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, "0")
const words = (...values: ReadonlyArray<bigint | number>): Hex.Hex =>
  Hex.unsafe(`0x${values.map(word).join("")}`)

const run = (
  types: string,
  data: Hex.Hex
): Outcome_.Result<ReadonlyArray<Values.Json>, Values.UndecodableData> =>
  Values.decode(Outcome_.getOrThrow(FunctionSignature.parseReturns(types)), data)

const decode = (types: string, data: Hex.Hex): ReadonlyArray<Values.Json> =>
  Outcome_.getOrThrow(run(types, data))

const refusal = (types: string, data: Hex.Hex): string =>
  Outcome_.getOrThrow(Outcome_.flip(run(types, data))).message

/** The values that ethers decodes, in our JSON, tuples as arrays; null where ethers refuses. */
const oracleDecode = (types: ReadonlyArray<string>, data: string): Values.Json => {
  const shown = (value: unknown): Values.Json => {
    if (typeof value === "bigint") return value.toString()
    if (value instanceof Result) return value.toArray().map(shown)
    return typeof value === "boolean" ? value : String(value)
  }
  try {
    const result = oracle.decode(types, data)
    return checkResultErrors(result).length > 0 ? null : shown(result)
  } catch {
    return null
  }
}

describe("Values", () => {
  it("integers are decimal strings, bytes lower-case hex, addresses EIP-55, booleans booleans", () => {
    const types = ["uint256", "int8", "int256", "address", "bool", "bytes4", "bytes", "string"]
    const address = "0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789"
    const most = 2n ** 256n - 1n
    const data = oracle.encode(types, [most, -128, -1, address, true, "0xA9059CBB", "0xABCD", "caf\u00e9"])
    const shown = [String(most), "-128", "-1", address, true, "0xa9059cbb", "0xabcd", "caf\u00e9"]
    expect(decode(types.join(","), Hex.unsafe(data))).toEqual(shown)
  })

  it("tuples are objects when all components have distinct names, otherwise arrays", () => {
    const data = words(1, 2)
    expect(decode("((uint8 a, uint8 b))", data)).toEqual([{ a: "1", b: "2" }])
    for (const type of ["uint8 a, uint8", "uint8, uint8", "uint8 a, uint8 a"])
      expect(decode(`((${type}))`, data)).toEqual([["1", "2"]])
  })

  it("a component called __proto__ is data and changes no prototype", () => {
    const [value] = decode("((uint8 __proto__, uint8 toString))", words(1, 2))
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(JSON.stringify(value)).toBe('{"__proto__":"1","toString":"2"}')
  })

  it("a string that is not UTF-8 keeps its readable parts", () => {
    const data = Hex.unsafe(`${words(32, 4)}61ff62c3${"0".repeat(56)}`)
    expect(decode("string", data)).toEqual(["a\ufffdb\ufffd"])
    expect(decode("string", Hex.unsafe(`${words(32, 3)}efbbbf${"0".repeat(58)}`))).toEqual(["\ufeff"])
  })

  it("bytes behind the values and missing padding at the end are accepted", () => {
    expect(decode("uint8", words(1, 2, 3))).toEqual(["1"])
    expect(decode("bytes", Hex.unsafe(`${words(32, 2)}abcd`))).toEqual(["0xabcd"])
    expect(decode("()", Hex.empty)).toEqual([])
    expect(decode("()", words(1))).toEqual([])
  })

  it.each<[string, Hex.Hex, string]>([
    ["uint256", Hex.empty, "there are none"],
    ["uint256", Hex.unsafe("0x01"), "end too early"],
    ["uint256,uint256", words(1), "end too early"],
    ["uint8", words(256), "does not fit in uint8"],
    ["int8", words(128), "does not fit in int8"],
    ["int8", words(-129), "does not fit in int8"],
    ["int8", words(255), "does not fit in int8"],
    ["address", words(2n ** 160n), "longer than 20 bytes"],
    ["bool", words(2), "neither 0 nor 1"],
    ["bool", words(2n ** 255n), "neither 0 nor 1"],
    ["bool", words(16), "neither 0 nor 1"],
    ["bytes4", words(1), "followed by other bytes"],
    ["string", words(32), "too early"],
    ["string", words(64), "too early"],
    ["string", words(2n ** 256n - 1n), "out of the data"],
    ["string", words(2n ** 256n - 32n, 0), "out of the data"],
    ["string", words(2n ** 48n), "out of the data"],
    ["string", words(2n ** 48n - 1n), "too early"],
    ["string", words(32, 1), "out of the data"],
    ["string", words(32, 33, 0), "out of the data"],
    ["bytes", words(32, 2n ** 255n, 0), "out of the data"],
    ["uint8[]", words(32, 2), "out of the data"],
    ["uint8[]", words(32, 2n ** 47n, 1), "out of the data"],
    ["(uint8,uint8)[]", words(32, 1, 1), "out of the data"],
    ["uint8[32768][]", words(32, 2n ** 47n, 1), "out of the data"],
    ["string[32768]", words(32, 1), "out of the data"]
  ])("%s refuses %s", (types, data, why) => {
    const message = refusal(types, data)
    expect(message.startsWith("the data do not fit (")).toBe(true)
    expect(message).toContain(why)
  })

  const many = (count: number, value: number) => new Array<number>(count).fill(value)
  const n = 16_000
  it.each<[string, string, ReadonlyArray<number>]>([
    ["arrays that share one tail", "uint256[][]", [32, n, ...many(n, 32 * n), n, ...many(n, 7)]],
    ["byte strings that share one tail", "bytes[]", [32, n, ...many(n, 32 * n), 32 * n, ...many(n, 7)]],
    ["arrays that point at themselves", `string${"[]".repeat(15)}`, many(32_768, 32)],
    ["only lengths", `uint256${"[]".repeat(16)}`, many(32_768, 1_024)]
  ])("%s cost no more than the size of the data", (_, types, data) => {
    const bytes = words(...data)
    expect(Work.of(() => expect(Outcome_.isFailure(run(types, bytes))).toBe(true))).toBeLessThan(3_000)
  })

  it("a mebibyte of distinct addresses is decoded", () => {
    const n = 32_766
    const data = words(32, n, ...Array.from({ length: n }, (_, i) => i))
    expect(decode("address[]", data)[0]).toHaveLength(n)
  })

  it("data that ethers encodes are decoded to the same values", () => {
    forAll(
      [generators.call],
      ({ types, values }) => {
        const outputs = `(${types.map(({ written }) => written).join(",")})`
        const data = oracle.encode(
          types.map(({ canonical }) => canonical),
          values.map((value) => value.oracle)
        )
        const decoded = decode(outputs, Hex.unsafe(data))
        expect(decoded).toEqual(values.map(({ shown }) => shown))
        const inputs = Outcome_.getOrThrow(FunctionSignature.parseReturns(outputs))
        const again = decoded.map((value) => (typeof value === "boolean" ? String(value) : value))
        expect(Outcome_.getOrThrow(Parameters.encode(inputs, again))).toBe(data)
      },
      { numRuns: 300 }
    )
  })

  const compare = (types: ReadonlyArray<string>, data: Hex.Hex): void => {
    const result = run(`(${types.join(",")})`, data)
    const expected = oracleDecode(types, data)
    if (Outcome_.isSuccess(result) && expected !== null) expect(result.success).toEqual(expected)
  }

  it("any bytes are decoded as ethers does, or refused, and never throw", () => {
    const small = fc.oneof(
      fc.nat(8).map((n) => 32 * n),
      fc.nat(3)
    )
    const smallWords = fc.array(small, { maxLength: 20 }).map((values) => words(...values))
    forAll(
      [generators.types, fc.oneof(smallWords, hex(400))],
      (types, data) =>
        compare(
          types.map(({ canonical }) => canonical),
          data
        ),
      { numRuns: 1_000 }
    )
  })

  it("valid data with a few digits changed are decoded as ethers does, or refused", () => {
    const change = fc.tuple(fc.nat(), fc.constantFrom(..."0123456789abcdef"))
    forAll(
      [generators.call, fc.array(change, { maxLength: 6 }), fc.nat()],
      ({ types, values }, changes, cut) => {
        const canonical = types.map((type) => type.canonical)
        const encoded = oracle.encode(
          canonical,
          values.map((value) => value.oracle)
        )
        const digits = [...encoded.slice(2)]
        for (const [at, digit] of changes) if (digits.length > 0) digits[at % digits.length] = digit
        const kept = cut % 3 === 0 ? 2 * (cut % (digits.length / 2 + 1)) : digits.length
        compare(canonical, Hex.unsafe(`0x${digits.slice(0, kept).join("")}`))
      },
      { numRuns: 1_000 }
    )
  })
})
