import { afterEach, describe, expect, it } from "@effect/vitest"
import { getAddress } from "ethers/address"
import { keccak256 } from "ethers/crypto"
import { toUtf8Bytes } from "ethers/utils"
import * as fc from "fast-check"
import * as Accelerated from "../../../src/domain/primitives/Accelerated.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import { forAll } from "../generators.js"

describe("keccak256", () => {
  it("keccak256 of lengths around the block size equals ethers", () => {
    for (let length = 0; length <= 420; length++) {
      const bytes = Hex.fromBytes(Uint8Array.from({ length }, (_, at) => (at * 31 + length) % 256))
      expect(Keccak.hash(bytes)).toBe(keccak256(bytes))
    }
    for (const length of [0, 1, 340, 341, 342, 343, 1_023, 1_024, 1_025])
      for (const text of ["a", "é", "€"].map((unit) => unit.repeat(length)))
        expect(Keccak.hashText(text)).toBe(keccak256(toUtf8Bytes(text)))
  })

  it("keccak256 of any bytes and text equals ethers", () => {
    forAll([fc.uint8Array({ maxLength: 2_000 }), fc.string({ unit: "grapheme" })], (bytes, text) => {
      expect(Keccak.hash(Hex.fromBytes(bytes))).toBe(keccak256(bytes))
      expect(Keccak.hashText(text)).toBe(keccak256(toUtf8Bytes(text)))
    })
  })

  it("keccak256 of many bytes equals ethers", () => {
    const bytes = Hex.fromBytes(Uint8Array.from({ length: 300_001 }, (_, at) => at % 251))
    expect(Keccak.hash(bytes)).toBe(keccak256(bytes))
    const text = "é".repeat(50_000)
    expect(Keccak.hashText(text)).toBe(keccak256(toUtf8Bytes(text)))
  })

  it("keccak256 begins with the selector of a signature", () => {
    expect(Keccak.selector("transfer(address,uint256)")).toBe("0xa9059cbb")
  })

  it("keccak256 makes the checksum of an address as ethers does", () => {
    forAll([fc.uint8Array({ minLength: 20, maxLength: 20 })], (bytes) => {
      const lower = Hex.fromBytes(bytes)
      expect(Address.unsafe(lower)).toBe(getAddress(lower))
      expect(Hex.toBytes(lower)).toEqual(bytes)
    })
  })
})

describe("another implementation", () => {
  afterEach(() => Accelerated.use(Accelerated.none))

  it("hashes in its place", () => {
    let digests = 0
    const keccak = (bytes: Uint8Array) => {
      digests += 1
      return keccak256(bytes).slice(2)
    }
    Accelerated.use({ ...Accelerated.none, keccak })
    for (const length of [0, 1, 300_001]) {
      const bytes = Hex.fromBytes(Uint8Array.from({ length }, (_, at) => at % 251))
      expect(Keccak.hash(bytes)).toBe(keccak256(bytes))
    }
    expect(Keccak.hashText("transfer")).toBe(keccak256(toUtf8Bytes("transfer")))
    expect(digests).toBe(4)
  })
})
