import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder, TypedDataEncoder } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import { address, bytes32, forAll, hex, mutated, uint48 } from "../generators.js"

/** Of any of them, some or none, in their own right. */
const conditions: fc.Arbitrary<Conditions.Conditions> = fc.record({
  validUntil: fc.oneof(fc.constant(0), uint48),
  validAfter: fc.oneof(fc.constant(0), uint48),
  bundler: fc.oneof(fc.constant(Address.zero), address)
})

const types = {
  Conditions: [
    { name: "userOpHash", type: "bytes32" },
    { name: "validUntil", type: "uint48" },
    { name: "validAfter", type: "uint48" },
    { name: "bundler", type: "address" }
  ]
}
const blob = ["uint48", "uint48", "address", "bytes"]
const notUint48 = fc.constantFrom(-1, 0.5, 2 ** 48, Number.NaN, Number.POSITIVE_INFINITY, -(2 ** 60))

describe("Conditions", () => {
  it("conditions are signed as the EIP-712 digest, or as the bare userOpHash when there are none", () => {
    forAll([bytes32, conditions], (userOpHash, given) => {
      const isNone = given.validUntil === 0 && given.validAfter === 0 && given.bundler === Address.zero
      const expected = isNone
        ? userOpHash
        : TypedDataEncoder.hash({ name: "castellan", version: "1" }, types, { userOpHash, ...given })
      expect(Conditions.signingHash(userOpHash, given)).toBe(expected)
    })
    forAll([bytes32], (hash) => Conditions.signingHash(hash, Conditions.none) === hash)
  })

  it("a change of any condition, or of the op, changes the signing hash", () => {
    forAll([bytes32, bytes32, conditions, conditions], (hashA, hashB, a, b) => {
      const same = hashA === hashB && JSON.stringify(a) === JSON.stringify(b)
      fc.pre(!Conditions.isNone(a) || !Conditions.isNone(b))
      expect(Conditions.signingHash(hashA, a) === Conditions.signingHash(hashB, b)).toBe(same)
    })
  })

  it("conditions and proof form the op's signature as ethers encodes it, and are parsed back", () => {
    forAll([conditions, hex(1200)], (given, proof) => {
      const signature = Conditions.encodeSignature(given, proof)
      const { validUntil, validAfter, bundler } = given
      expect(signature).toBe(
        AbiCoder.defaultAbiCoder().encode(blob, [validUntil, validAfter, bundler, proof])
      )
      expect(Conditions.decodeSignature(signature)).toEqual(Result.succeed({ conditions: given, proof }))
    })
  })

  it("conditions are read from the canonical encoding only", () => {
    const signatures = fc.tuple(conditions, hex()).map(([c, proof]) => Conditions.encodeSignature(c, proof))
    forAll(
      [mutated(signatures)],
      ([right, wrong]) => {
        const result = Conditions.decodeSignature(wrong)
        if (wrong !== right && Result.isSuccess(result))
          expect(result).not.toEqual(Conditions.decodeSignature(right))
      },
      { numRuns: 500 }
    )
    const word = (digits: string) => digits.padStart(64, "0")
    for (const text of [
      "0x",
      `0x${word("1000000000000")}${word("0")}${word("0")}${word("80")}${word("0")}`,
      `0x${word("0")}${word("0")}${`${"0".repeat(23)}1`.padEnd(64, "0")}${word("80")}${word("0")}`,
      `0x${word("0")}${word("0")}${word("0")}${word("a0")}${word("0")}${word("0")}`,
      `0x${word("0")}${word("0")}${word("0")}${word("80")}${word("1")}${"ff".repeat(32)}`,
      `0x${word("0")}${word("0")}${word("0")}${word("80")}${"f".repeat(64)}`
    ])
      expect(Result.isFailure(Conditions.decodeSignature(Hex.unsafe(text)))).toBe(true)
  })

  it("conditions with impossible times never become unbounded", () => {
    const never = { validUntil: 1, validAfter: 2 ** 48 - 1 }
    forAll([bytes32, notUint48, uint48, fc.boolean()], (hash, wrong, right, first) => {
      const given = {
        validUntil: first ? wrong : right,
        validAfter: first ? right : wrong,
        bundler: Address.zero
      }
      expect(Conditions.signingHash(hash, given)).toBe(
        Conditions.signingHash(hash, { ...never, bundler: Address.zero })
      )
      expect(Conditions.decodeSignature(Conditions.encodeSignature(given, Hex.empty))).toEqual(
        Result.succeed({ conditions: { ...never, bundler: Address.zero }, proof: Hex.empty })
      )
    })
  })
})
