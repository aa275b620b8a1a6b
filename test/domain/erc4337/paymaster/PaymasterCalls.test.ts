import { describe, expect, it } from "@effect/vitest"
import { AbiCoder, Interface } from "ethers"
import * as fc from "fast-check"
import { versions } from "../../../../src/domain/erc4337/EntryPoint.js"
import * as PaymasterCalls from "../../../../src/domain/erc4337/paymaster/PaymasterCalls.js"
import * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { bytes32, forAll, hex, mutated, op, uint } from "../../generators.js"

describe.each(versions)("calls of a paymaster of %s", (version) => {
  const struct = UserOperation.structOf(version)
  const abi = new Interface([
    `function validateUserOp(${struct} op, bytes32 hash, uint256 missing)`,
    `function validatePaymasterUserOp(${struct} op, bytes32 hash, uint256 maxCost)`,
    `function postOp(uint8 mode, bytes context, uint256 cost${version === "v0.6" ? "" : ", uint256 fee"})`
  ])

  it("paymaster calls are encoded as by ethers", () => {
    forAll([op(version), bytes32, uint(256), uint(256), hex()], (each, hash, wei, fee, context) => {
      const call = UserOperation.validateCall(version, each, hash)
      const [tuple] = AbiCoder.defaultAbiCoder().decode([struct], UserOperation.encode(version, each))
      const args = [tuple, hash, wei]
      expect(PaymasterCalls.withMissing(call, wei)).toBe(abi.encodeFunctionData("validateUserOp", args))
      expect(PaymasterCalls.approve(call, wei)).toBe(abi.encodeFunctionData("validatePaymasterUserOp", args))
      expect(PaymasterCalls.postOp(call, context, wei, fee)).toBe(
        abi.encodeFunctionData("postOp", [0, context, wei, ...(version === "v0.6" ? [] : [fee])])
      )
    })
  })
})

describe("a paymaster's answer", () => {
  const answers = fc
    .tuple(hex(), uint(256))
    .map(([context, data]) =>
      Hex.unsafe(AbiCoder.defaultAbiCoder().encode(["bytes", "uint256"], [context, data]))
    )

  it("a paymaster's reply is read as by ethers, and other bytes never throw", () => {
    forAll([mutated(answers)], ([right, wrong]) => {
      const [context, validationData] = AbiCoder.defaultAbiCoder().decode(["bytes", "uint256"], right)
      expect(PaymasterCalls.readApproval(right)).toEqual({ context, validationData })
      PaymasterCalls.readApproval(wrong)
    })
    expect(PaymasterCalls.readApproval(Hex.unsafe(`0x${"00".repeat(95)}`))).toBeNull()
  })
})
