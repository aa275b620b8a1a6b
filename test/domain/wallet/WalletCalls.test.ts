import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder, Interface } from "ethers"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import * as WalletCalls from "../../../src/domain/wallet/WalletCalls.js"
import * as Work from "../../support/Work.js"
import { address, forAll, hex, mutated, uint } from "../generators.js"

const abi = new Interface([
  "function execute(address target,uint256 value,bytes data) returns (bytes)",
  "function executeBatch((address target,uint256 value,bytes data)[] calls) returns (bytes[])",
  "function configuration() view returns ((uint8,uint8,address[],(bytes32,bytes32)[]),uint64)",
  "function validator() view returns (address)"
])
const coder = AbiCoder.defaultAbiCoder()
const call = fc.record({ target: address, value: uint(256), data: hex() })

describe("WalletCalls", () => {
  it("WalletCalls are encoded canonically as by ethers, read back, and sum their wei", () => {
    forAll([call, fc.array(call, { maxLength: 5 }), hex(40)], (one, calls, tail) => {
      const single = WalletCalls.execute(one.target, one.value, one.data)
      expect(single).toBe(abi.encodeFunctionData("execute", [one.target, one.value, one.data]))
      const batch = WalletCalls.executeBatch(calls)
      expect(batch).toBe(abi.encodeFunctionData("executeBatch", [calls]))
      for (const { callData, inner } of [
        { callData: single, inner: [one] },
        { callData: batch, inner: calls }
      ]) {
        expect(WalletCalls.read(callData)).toEqual(inner)
        expect(WalletCalls.valueOf(callData)).toBe(inner.reduce((sum, { value }) => sum + value, 0n))
        expect(WalletCalls.isCanonical(callData)).toBe(true)
        expect(WalletCalls.isCanonical(Hex.concat(callData, tail))).toBe(tail === Hex.empty)
        expect(WalletCalls.isCanonical(Hex.unsafe(callData.slice(0, -64)))).toBe(false)
        const other = Hex.unsafe(`0x00000000${callData.slice(10)}`)
        expect([WalletCalls.read(other), WalletCalls.valueOf(other)]).toEqual([[], 0n])
        const hostile = Hex.unsafe(`${callData.slice(0, 10)}${tail.slice(2)}`)
        expect(WalletCalls.valueOf(hostile)).toBeGreaterThanOrEqual(0n)
      }
      expect(WalletCalls.isCanonical(tail)).toBe(true)
    })
  })

  it("WalletCalls ask for configuration and validator as ethers does", () => {
    expect(WalletCalls.configuration).toBe(abi.encodeFunctionData("configuration"))
    expect(WalletCalls.validator).toBe(abi.encodeFunctionData("validator"))
  })

  it("calls that share bytes are read until their total exceeds the calldata", () => {
    const [count, size] = [1_000, 4_096]
    const text = [
      Words.uint(32n),
      Words.uint(BigInt(count)),
      Words.uint(BigInt(32 * count)).repeat(count),
      Words.uint(1n),
      Words.uint(2n),
      Words.uint(96n),
      Words.uint(BigInt(size)),
      "11".repeat(size)
    ].join("")
    const callData = Hex.unsafe(`${abi.getFunction("executeBatch")?.selector}${text}`)
    const data = Hex.unsafe(`0x${"11".repeat(size)}`)
    const target = "0x0000000000000000000000000000000000000001"
    const most = Math.floor(callData.length / data.length) + 1
    expect(WalletCalls.read(callData)).toEqual(Array(most).fill({ target, value: 2n, data }))
  })

  it("results of the inner calls are decoded", () => {
    forAll([hex(500), fc.array(hex(), { maxLength: 5 })], (data, results) => {
      expect(WalletCalls.decodeExecuteResult(Hex.unsafe(coder.encode(["bytes"], [data])))).toEqual(
        Result.succeed(data)
      )
      expect(WalletCalls.decodeExecuteBatchResult(Hex.unsafe(coder.encode(["bytes[]"], [results])))).toEqual(
        Result.succeed(results)
      )
    })
  })

  it("results are not decoded from other data", () => {
    const one = hex(300).map((data) => Hex.unsafe(coder.encode(["bytes"], [data])))
    const many = fc.array(hex(70)).map((data) => Hex.unsafe(coder.encode(["bytes[]"], [data])))
    forAll(
      [mutated(one), mutated(many)],
      ([rightOne, wrongOne], [rightMany, wrongMany]) => {
        const single = WalletCalls.decodeExecuteResult(wrongOne)
        if (wrongOne !== rightOne && Result.isSuccess(single))
          expect(single).not.toEqual(WalletCalls.decodeExecuteResult(rightOne))
        const batch = WalletCalls.decodeExecuteBatchResult(wrongMany)
        if (wrongMany !== rightMany && Result.isSuccess(batch))
          expect(batch).not.toEqual(WalletCalls.decodeExecuteBatchResult(rightMany))
      },
      { numRuns: 500 }
    )
    expect(Result.isFailure(WalletCalls.decodeExecuteResult(Hex.empty))).toBe(true)
    expect(Result.isFailure(WalletCalls.decodeExecuteBatchResult(Hex.empty))).toBe(true)
  })

  it("WalletCalls refuse results that share their bytes without multiplying them", () => {
    const count = 8000
    const shared = 32 * count
    const size = 256 * 1024
    const text = [
      Words.uint(32n),
      Words.uint(BigInt(count)),
      Words.uint(BigInt(shared)).repeat(count),
      Words.uint(BigInt(size)),
      "11".repeat(size)
    ].join("")
    const work = Work.of(() =>
      expect(Result.isFailure(WalletCalls.decodeExecuteBatchResult(Hex.unsafe(`0x${text}`)))).toBe(true)
    )
    expect(work).toBeLessThan(500)
  })
})
