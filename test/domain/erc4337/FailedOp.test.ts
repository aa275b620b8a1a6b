import { describe, expect, it } from "@effect/vitest"
import { Interface } from "ethers"
import * as fc from "fast-check"
import * as FailedOp from "../../../src/domain/erc4337/FailedOp.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { hex } from "../generators.js"

const abi = new Interface([
  "error FailedOp(uint256 opIndex, string reason)",
  "error FailedOpWithRevert(uint256 opIndex, string reason, bytes inner)",
  "error SignatureValidationFailed(address aggregator)"
])
const failed = (index: number | bigint, reason: string) =>
  Hex.unsafe(abi.encodeErrorResult("FailedOp", [index, reason]))
const failedWith = (index: number | bigint, reason: string, inner: string) =>
  Hex.unsafe(abi.encodeErrorResult("FailedOpWithRevert", [index, reason, inner]))

describe("the op that a reverted bundle blames", () => {
  it.prop(
    "is named by both of the EntryPoint's errors",
    [fc.nat(65_535), fc.string(), hex(64)],
    ([index, reason, inner]) => {
      expect(FailedOp.opIndex(failed(index, reason))).toBe(index)
      expect(FailedOp.opIndex(failedWith(index, reason, inner))).toBe(index)
    }
  )

  it("is none of another error, of less than an index, or of an index that no bundle has", () => {
    const another = abi.encodeErrorResult("SignatureValidationFailed", [`0x${"11".repeat(20)}`])
    const cut = failed(1, "AA24").slice(0, 73)
    for (const data of [another, cut, "0x", failed(65_536, ""), failed(2n ** 256n - 1n, "")])
      expect(FailedOp.opIndex(Hex.unsafe(data))).toBeNull()
    expect(FailedOp.opIndex(Hex.unsafe(failed(1, "AA24").slice(0, 74)))).toBe(1)
  })
})

describe("why an op is blamed", () => {
  const kinds = (data: Hex.Hex) => [FailedOp.isSignature(data), FailedOp.isOutdated(data)]

  it("is its signature by AA24, and what the chain has become by AA10 and AA25", () => {
    for (const of of [failed, (index: number, reason: string) => failedWith(index, reason, "0x1234")]) {
      expect(kinds(of(0, "AA24 signature error"))).toEqual([true, false])
      expect(kinds(of(3, "AA10 sender already constructed"))).toEqual([false, true])
      expect(kinds(of(3, "AA25 invalid account nonce"))).toEqual([false, true])
      for (const reason of ["", "AA23 reverted", "AA21 didn't pay prefund", "not AA24", "not AA25"])
        expect(kinds(of(0, reason))).toEqual([false, false])
    }
  })

  it("is not read where no op is named", () => {
    expect(kinds(failed(65_536, "AA24 signature error"))).toEqual([false, false])
    expect(kinds(failed(65_536, "AA25 invalid account nonce"))).toEqual([false, false])
    expect(kinds(Hex.empty)).toEqual([false, false])
  })
})
