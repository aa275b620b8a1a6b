import { describe, expect, it } from "@effect/vitest"
import { Interface } from "ethers"
import * as fc from "fast-check"
import * as FailedOp from "../../../src/domain/erc4337/FailedOp.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { forAll, hex } from "../generators.js"

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
  it("the blamed op is named by both of the EntryPoint's errors", () => {
    forAll([fc.nat(65_535), fc.string(), hex(64)], (index, reason, inner) => {
      expect(FailedOp.opIndex(failed(index, reason))).toBe(index)
      expect(FailedOp.opIndex(failedWith(index, reason, inner))).toBe(index)
    })
  })

  it("FailedOp reads no index from another error, cut data or an impossible index", () => {
    const another = abi.encodeErrorResult("SignatureValidationFailed", [`0x${"11".repeat(20)}`])
    const cut = failed(1, "AA24").slice(0, 73)
    for (const data of [another, cut, "0x", failed(65_536, ""), failed(2n ** 256n - 1n, "")])
      expect(FailedOp.opIndex(Hex.unsafe(data))).toBeNull()
    expect(FailedOp.opIndex(Hex.unsafe(failed(1, "AA24").slice(0, 74)))).toBe(1)
  })
})

it.each([
  ["AA24 signature error", true, false],
  ["AA10 sender already constructed", false, true],
  ["AA25 invalid account nonce", false, true],
  ...["", "AA23 reverted", "AA21 didn't pay prefund", "not AA24", "not AA25"].map(
    (reason) => [reason, false, false] as const
  )
] as const)(
  "a bundle reverted with %j blames the signature: %s, the changed chain: %s",
  (reason, signature, outdated) => {
    const kinds = (data: Hex.Hex) => [FailedOp.isSignature(data), FailedOp.isOutdated(data)]
    for (const data of [failed(3, reason), failedWith(0, reason, "0x1234")])
      expect(kinds(data)).toEqual([signature, outdated])
    // Not where no op is named.
    for (const data of [failed(65_536, reason), Hex.empty]) expect(kinds(data)).toEqual([false, false])
  }
)
