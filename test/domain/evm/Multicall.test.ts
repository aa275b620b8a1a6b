import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { Interface } from "ethers"
import * as fc from "fast-check"
import * as Multicall from "../../../src/domain/evm/Multicall.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Work from "../../support/Work.js"
import { address, forAll, hex } from "../generators.js"

const abi = new Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[] returnData)"
])

const calls = fc.array(fc.record({ to: address, data: hex(100) }), { maxLength: 20 })
const results = fc.array(fc.record({ success: fc.boolean(), data: hex(100) }), { maxLength: 20 })

const encode = (list: ReadonlyArray<Multicall.Result>): Hex.Hex =>
  Hex.unsafe(abi.encodeFunctionResult("aggregate3", [list.map(({ data, success }) => [success, data])]))

describe("Multicall3", () => {
  it("a Multicall3 call is encoded as by ethers", () => {
    forAll([calls], (list) => {
      expect(Multicall.aggregate(list)).toBe(
        abi.encodeFunctionData("aggregate3", [list.map(({ data, to }) => [to, true, data])])
      )
    })
  })

  it("a Multicall3 reply is decoded as ethers encodes it", () => {
    forAll([results], (list) => {
      expect(Multicall.decode(encode(list), list.length)).toEqual(Result.succeed(list))
    })
  })

  it("a Multicall3 reply with a wrong number of results is rejected", () => {
    forAll([results, fc.nat(30)], (list, count) => {
      fc.pre(count !== list.length)
      expect(Result.isFailure(Multicall.decode(encode(list), count))).toBe(true)
    })
  })

  it("a Multicall3 reply is rejected when a byte is missing, added or outside its type", () => {
    forAll([results, fc.nat(), hex(40)], (list, cut, more) => {
      const data = encode(list)
      const shorter = Hex.unsafe(data.slice(0, 2 + 2 * (cut % Hex.size(data))))
      expect(Result.isFailure(Multicall.decode(shorter, list.length))).toBe(true)
      if (more !== "0x")
        expect(Result.isFailure(Multicall.decode(Hex.concat(data, more), list.length))).toBe(true)
    })
    const one = encode([{ success: true, data: Hex.empty }])
    expect(Result.isFailure(Multicall.decode(Hex.unsafe(one.replace(/1(0{62}40)/, "2$1")), 1))).toBe(true)
  })

  it("a rejected Multicall3 reply reports the expected number of results", () => {
    expect(Multicall.decode(Hex.empty, 3)).toEqual(Result.fail("expected abi.encode of 3 results"))
  })

  it("Multicall3 has the toll paid when the pairing check of no points is true, and by nothing else", () => {
    const yes = Hex.unsafe(`0x${"1".padStart(64, "0")}`)
    expect(Multicall.isPaid({ success: true, data: yes })).toBe(true)
    expect(Multicall.isPaid({ success: false, data: yes })).toBe(false)
    for (const data of ["0x", `0x${"0".repeat(64)}`, `0x${"2".padStart(64, "0")}`, `${yes}00`])
      expect(Multicall.isPaid({ success: true, data: Hex.unsafe(data) }), data).toBe(false)
    // EIP-197: the precompile at address 8.
    expect(Multicall.toll).toEqual({ to: `0x${"8".padStart(40, "0")}`, data: "0x" })
  })

  it("a Multicall3 reply of any bytes never throws, and accepted ones are as ethers encodes", () => {
    forAll([hex(400), fc.nat(5)], (data, count) => {
      const decoded = Multicall.decode(data, count)
      if (Result.isSuccess(decoded)) expect(encode(decoded.success)).toBe(data)
    })
  })

  it("spends no more on elements that overlap than on others", () => {
    const word = (value: number) => value.toString(16).padStart(64, "0")
    const count = 256
    const long = 100_000
    const offsets = Array.from({ length: count }, () => word(32 * count)).join("")
    const element = word(1) + word(64) + word(long) + "00".repeat(long)
    const data = Hex.unsafe(`0x${word(32)}${word(count)}${offsets}${element}`)
    const work = Work.of(() => expect(Result.isFailure(Multicall.decode(data, count))).toBe(true))
    expect(work).toBeLessThan(500)
  })
})
