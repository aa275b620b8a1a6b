import { describe, expect, it } from "@effect/vitest"
import { computeAddress, SigningKey } from "ethers"
import * as fc from "fast-check"
import * as Secp256k1 from "../../../src/domain/evm/Secp256k1.js"
import { bytes32 } from "../generators.js"

const privateKey = fc
  .bigInt({ min: 1n, max: Secp256k1.order - 1n })
  .map((n) => `0x${n.toString(16).padStart(64, "0")}`)
const publicKeyOf = (key: string) => new SigningKey(key).publicKey.slice(2)
const signed = (key: string, digest: string) => {
  const { r, s, v } = new SigningKey(key).sign(digest)
  return { r: BigInt(r), s: BigInt(s), v }
}

describe("a public key", () => {
  it("is a point of the curve, and has the address that ethers computes", () => {
    fc.assert(
      fc.property(privateKey, (key) => {
        const publicKey = publicKeyOf(key)
        expect(Secp256k1.isPublicKey(publicKey)).toBe(true)
        expect(Secp256k1.addressOf(publicKey)).toBe(computeAddress(key))
      }),
      { numRuns: 50 }
    )
  })

  it("is none with a digit changed, a coordinate beyond the field, or in another form", () => {
    const publicKey = publicKeyOf(`0x${"11".repeat(32)}`)
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 129 }), fc.integer({ min: 1, max: 15 }), (at, by) => {
        const digit = (Number.parseInt(publicKey[at] ?? "0", 16) ^ by).toString(16)
        const changed = publicKey.slice(0, at) + digit + publicKey.slice(at + 1)
        expect(Secp256k1.isPublicKey(changed)).toBe(false)
      })
    )
    const field = 2n ** 256n - 2n ** 32n - 977n
    const y = BigInt(`0x${publicKey.slice(66)}`)
    // x of 1 is on the curve, and so it would be with the field added.
    const one = "4218f20ae6c646b363db68605822fb14264ca8d2587fdd6fbc750d587e76a7ee"
    expect(Secp256k1.isPublicKey(`04${"1".padStart(64, "0")}${one}`)).toBe(true)
    expect(Secp256k1.isPublicKey(`04${(field + 1n).toString(16)}${one}`)).toBe(false)
    expect(Secp256k1.isPublicKey(publicKey.slice(0, 66) + (field - y).toString(16).padStart(64, "0"))).toBe(
      true
    )
    for (const text of [
      "",
      "04",
      `0x${publicKey}`,
      publicKey.toUpperCase(),
      `06${publicKey.slice(2)}`,
      `${publicKey}00`,
      "0".repeat(130),
      `04${"0".repeat(128)}`
    ])
      expect(Secp256k1.isPublicKey(text)).toBe(false)
  })
})

describe("a signature", () => {
  it("is proven in its low form with the recovery id that ethers gives, from either form of s", () => {
    fc.assert(
      fc.property(privateKey, bytes32, fc.boolean(), (key, digest, high) => {
        const { r, s, v } = signed(key, digest)
        const expected = new SigningKey(key).sign(digest).serialized
        expect(Secp256k1.proven(publicKeyOf(key), digest, { r, s: high ? Secp256k1.order - s : s })).toBe(
          expected
        )
        expect(v === 27 || v === 28).toBe(true)
      }),
      { numRuns: 50 }
    )
  })

  it("proves nothing for another key or another digest, nor with any r and s", () => {
    fc.assert(
      fc.property(
        privateKey,
        privateKey,
        bytes32,
        bytes32,
        fc.bigInt(),
        fc.bigInt(),
        (key, other, digest, another, r, s) => {
          fc.pre(key !== other && digest !== another)
          const signature = signed(key, digest)
          expect(Secp256k1.proven(publicKeyOf(other), digest, signature)).toBeNull()
          expect(Secp256k1.proven(publicKeyOf(key), another, signature)).toBeNull()
          expect(Secp256k1.proven(publicKeyOf(key), digest, { r, s })).toBeNull()
          expect(
            Secp256k1.proven(publicKeyOf(key), digest, { r: signature.r, s: signature.s + Secp256k1.order })
          ).toBeNull()
        }
      ),
      { numRuns: 30 }
    )
  })
})
