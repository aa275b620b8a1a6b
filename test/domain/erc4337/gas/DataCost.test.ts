import { describe, expect, it } from "@effect/vitest"
import * as DataCost from "../../../../src/domain/erc4337/gas/DataCost.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { forAll, hex, op } from "../../generators.js"

/** All bytes are zero, except lengths and offsets. */
const blank = {
  sender: Address.zero,
  nonce: 0n,
  initCode: Hex.empty,
  callData: Hex.empty,
  maxFeePerGas: 0n,
  maxPriorityFeePerGas: 0n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty
}

describe("the cost of data", () => {
  it("the cost of data is 4 gas per zero byte and 16 per other byte", () => {
    expect(DataCost.ofBytes("0x")).toEqual({ gas: 0n, bytes: 0n })
    expect(DataCost.ofBytes("0x00120010a0")).toEqual({ gas: 2n * 4n + 3n * 16n, bytes: 5n })
    forAll([hex(300), hex(300)], (one, other) => {
      const whole = DataCost.ofBytes(Hex.concat(one, other))
      expect(whole).toEqual(DataCost.add(DataCost.ofBytes(one), DataCost.ofBytes(other)))
      expect(whole.bytes).toBe(BigInt(Hex.size(one) + Hex.size(other)))
    })
  })

  it("the cost of data has a floor of 10 gas per token", () => {
    expect(DataCost.floorOf(DataCost.ofBytes("0x00ff"))).toBe(10n + 40n)
  })

  it("the cost of handleOps without ops is the cost of its selector and three words", () => {
    // 4 bytes; an offset and a length of one byte each, an address of 20, all in words of 32.
    expect(DataCost.handleOpsFrame).toEqual({ gas: 4n * 16n + 3n * 128n + 22n * 12n, bytes: 100n })
  })

  it("the cost of an op without data is the cost of its words, with gas limits of three bytes", () => {
    const offsets = 5n * (128n + 2n * 12n)
    const lengths = 4n * 128n
    const limits = 3n * (128n + 3n * 12n)
    const zeros = 128n
    expect(DataCost.ofOp("v0.6", { ...blank })).toEqual({
      gas: offsets + lengths + limits + 4n * zeros,
      bytes: 16n * 32n
    })
    // Two limits, and two prices, share a word.
    for (const version of ["v0.7", "v0.8"] as const)
      expect(DataCost.ofOp(version, { ...blank })).toEqual({
        gas: offsets + lengths + limits - zeros + 3n * zeros,
        bytes: 14n * 32n
      })
  })

  it("the cost of an op ignores its gas limits, and is cached per version", () => {
    forAll([op("v0.7")], (some) => {
      const other = { ...some, callGasLimit: 1n, verificationGasLimit: 1n, preVerificationGas: 1n }
      const cost = DataCost.ofOp("v0.7", some)
      expect(DataCost.ofOp("v0.7", other)).toEqual(cost)
      expect(DataCost.ofOp("v0.7", some)).toBe(cost)
      expect(DataCost.ofOp("v0.6", some).bytes).toBe(cost.bytes + 64n)
      expect(DataCost.ofOp("v0.7", some)).toEqual(cost)
    })
  })
})
