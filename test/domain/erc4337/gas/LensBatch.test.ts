import { describe, expect, it } from "@effect/vitest"
import { Interface } from "ethers"
import fc from "fast-check"
import lens from "../../../../contracts/artifacts/GasLens.json" with { type: "json" }
import * as LensBatch from "../../../../src/domain/erc4337/gas/LensBatch.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { forAll } from "../../generators.js"

const abi = new Interface(lens.abi)
const lists = fc.array(
  fc.uint8Array({ maxLength: 200 }).map((data) => Hex.unsafe(`0x${Buffer.from(data).toString("hex")}`)),
  { maxLength: 6 }
)
const answerOf = (each: ReadonlyArray<Hex.Hex>): Hex.Hex =>
  Hex.unsafe(abi.encodeFunctionResult("measureEach", [each]))

describe("batched lens calls", () => {
  it("batched lens calls are the calldata that the contract's own ABI gives", () => {
    forAll([lists], (calls) => {
      expect(LensBatch.encode(calls)).toBe(abi.encodeFunctionData("measureEach", [calls]))
    })
  })

  it("batched lens calls yield the contract's reply to each call", () => {
    forAll([lists], (answers) => {
      expect(LensBatch.decode(answerOf(answers), answers.length)).toEqual(answers)
    })
  })

  it("batched lens calls have no answers where there are fewer or more than calls, or none at all", () => {
    forAll([lists, fc.integer({ min: 0, max: 8 })], (answers, count) => {
      fc.pre(count !== answers.length)
      expect(LensBatch.decode(answerOf(answers), count)).toBeNull()
    })
    expect(LensBatch.decode(Hex.empty, 1)).toBeNull()
    expect(LensBatch.decode(Hex.unsafe("0x08c379a0"), 2)).toBeNull()
  })

  it("batched lens calls refuse a reply whose offsets share the same bytes", () => {
    const word = (value: number) => value.toString(16).padStart(64, "0")
    const long = "ab".repeat(1_024)
    const looped = Hex.unsafe(`0x${word(32)}${word(3)}${word(96).repeat(3)}${word(1_024)}${long}`)
    expect(LensBatch.decode(looped, 3)).toBeNull()
  })

  it("batched lens calls never fail, whatever the answer", () => {
    forAll([fc.uint8Array({ maxLength: 400 }), fc.integer({ min: 0, max: 40 })], (data, count) => {
      const told = LensBatch.decode(Hex.unsafe(`0x${Buffer.from(data).toString("hex")}`), count)
      expect(told === null || told.length === count).toBe(true)
    })
  })
})
