import { describe, expect, it } from "@effect/vitest"
import { AbiCoder, concat, Interface } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Counterfactual from "../../../src/domain/signature/Counterfactual.js"

const factory = Address.unsafe("0x4444444444444444444444444444444444444444")
const bytes = fc.uint8Array({ maxLength: 200 }).map(Hex.fromBytes)
const word = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((each) => Hex.unsafe32(Hex.fromBytes(each)))

describe("signatures of wallets that are not deployed", () => {
  it("are abi.encode(factory, calldata, signature) and the magic word, as ethers encodes them", () => {
    fc.assert(
      fc.property(bytes, bytes, (data, signature) => {
        const encoded = AbiCoder.defaultAbiCoder().encode(
          ["address", "bytes", "bytes"],
          [factory, data, signature]
        )
        expect(Counterfactual.wrap({ factory, data }, signature)).toBe(
          concat([encoded, `0x${"6492".repeat(16)}`])
        )
      })
    )
  })
})

describe("isValidSignature", () => {
  it("is called as ethers encodes it, and valid with exactly the magic value", () => {
    const abi = new Interface(["function isValidSignature(bytes32,bytes) view returns (bytes4)"])
    fc.assert(
      fc.property(word, bytes, (hash, signature) => {
        expect(Counterfactual.check(hash, signature)).toBe(
          abi.encodeFunctionData("isValidSignature", [hash, signature])
        )
      })
    )
    const answer = (value: string) => Hex.unsafe(abi.encodeFunctionResult("isValidSignature", [value]))
    expect(Counterfactual.isValid(answer("0x1626ba7e"))).toBe(true)
    for (const other of [answer("0xffffffff"), answer("0x00000000"), Hex.empty, Hex.unsafe("0x1626ba7e")])
      expect(Counterfactual.isValid(other)).toBe(false)
  })
})
