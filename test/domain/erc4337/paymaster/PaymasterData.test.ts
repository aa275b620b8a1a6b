import { describe, expect, it } from "@effect/vitest"
import { solidityPacked } from "ethers"
import * as fc from "fast-check"
import { versions } from "../../../../src/domain/erc4337/EntryPoint.js"
import * as PaymasterData from "../../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { address, forAll, hex, uint } from "../../generators.js"

const limits: fc.Arbitrary<PaymasterData.Limits> = fc.record({
  verificationGasLimit: uint(128),
  postOpGasLimit: uint(128)
})
const parts = fc.record({ paymaster: address, limits, data: hex() })

describe.each(versions)("paymasterAndData of %s", (version) => {
  const least = version === "v0.6" ? 20 : 52

  it("paymasterAndData is packed as in Solidity, and parsed back", () => {
    forAll([parts], (given) => {
      const { data, limits, paymaster } = given
      const packed = PaymasterData.make(version, given)
      expect(packed).toBe(
        version === "v0.6"
          ? solidityPacked(["address", "bytes"], [paymaster, data])
          : solidityPacked(
              ["address", "uint128", "uint128", "bytes"],
              [paymaster, limits.verificationGasLimit, limits.postOpGasLimit, data]
            )
      )
      expect(PaymasterData.read(version, packed)).toEqual(
        version === "v0.6" ? { ...given, limits: PaymasterData.noLimits } : given
      )
    })
  })

  it("paymasterAndData costs at most as much as the dearest data of the same length", () => {
    forAll([parts], (given) => {
      const packed = PaymasterData.make(version, given)
      const dearest = PaymasterData.dearest(version, packed)
      expect(Hex.size(dearest)).toBe(Hex.size(packed))
      expect(PaymasterData.read(version, dearest)).toEqual({
        ...PaymasterData.read(version, packed),
        data: `0x${"ff".repeat(Hex.size(given.data))}`
      })
    })
  })

  it("paymasterAndData gets other limits in place from v0.7 on", () => {
    forAll([parts, limits], (given, others) => {
      const packed = PaymasterData.make(version, given)
      expect(PaymasterData.withLimits(version, packed, others)).toBe(
        version === "v0.6" ? packed : PaymasterData.make(version, { ...given, limits: others })
      )
    })
  })

  it("paymasterAndData is not read, nor changed, while a fixed field is missing", () => {
    for (const length of [0, 1, 19, 20, 51, 52]) {
      const data = Hex.unsafe(`0x${"11".repeat(length)}`)
      const read = PaymasterData.read(version, data)
      expect(read === null).toBe(length < least)
      if (length < least)
        expect(
          PaymasterData.withLimits(version, data, { verificationGasLimit: 1n, postOpGasLimit: 2n })
        ).toBe(data)
    }
  })

  it("paymasterAndData keeps oversized limits out of its other fields", () => {
    const packed = PaymasterData.make(version, {
      paymaster: Address.zero,
      limits: { verificationGasLimit: 1n << 130n, postOpGasLimit: (1n << 200n) + 5n },
      data: Hex.empty
    })
    expect(PaymasterData.read(version, packed)).toEqual({
      paymaster: Address.zero,
      limits: version === "v0.6" ? PaymasterData.noLimits : { verificationGasLimit: 0n, postOpGasLimit: 5n },
      data: Hex.empty
    })
  })
})

describe("the data of a paymaster", () => {
  it("paymaster data are submitted up to 4,096 bytes", () => {
    expect(PaymasterData.objection(Hex.unsafe(`0x${"01".repeat(4_096)}`))).toBeNull()
    expect(PaymasterData.objection(Hex.unsafe(`0x${"01".repeat(4_097)}`))).toBe(
      "expected at most 4096 bytes of the paymaster's data, but there are 4097"
    )
  })

  it("empty paymaster data stay empty when they are priced", () => {
    for (const version of versions) expect(PaymasterData.dearest(version, Hex.empty)).toBe(Hex.empty)
  })
})
