import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { computeAddress, SigningKey, toBeHex } from "ethers"
import * as fc from "fast-check"
import * as Secp256k1 from "../../../src/domain/crypto/Secp256k1.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
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
        expect(Secp256k1.prover(publicKeyOf(key))(digest, { r, s: high ? Secp256k1.order - s : s })).toBe(
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
          const prove = Secp256k1.prover(publicKeyOf(key))
          expect(Secp256k1.prover(publicKeyOf(other))(digest, signature)).toBeNull()
          expect(prove(another, signature)).toBeNull()
          expect(prove(digest, { r, s })).toBeNull()
          expect(prove(digest, { r: signature.r, s: signature.s + Secp256k1.order })).toBeNull()
        }
      ),
      { numRuns: 30 }
    )
  })
})

describe("what the library of the curve computes", () => {
  const edge = fc.constantFrom(
    ...[
      `0x${"00".repeat(32)}`,
      `0x${"ff".repeat(32)}`,
      `0x${Secp256k1.order.toString(16)}`,
      `0x${(Secp256k1.order - 1n).toString(16)}`,
      `0x${"00".repeat(31)}01`
    ].map(Hex.unsafe32)
  )
  const anyDigest = fc.oneof({ weight: 4, arbitrary: bytes32 }, edge)

  it("is what ethers computes: key, signature, who has signed, and the proof of it", () => {
    fc.assert(
      fc.property(privateKey, anyDigest, (text, digest) => {
        const key = Either.getOrThrow(Secp256k1.privateKey(Hex.unsafe32(text)))
        const theirs = new SigningKey(text)
        expect(key.publicKey).toBe(theirs.publicKey.slice(2))
        const signature = key.sign(digest)
        expect(Secp256k1.serialize(signature)).toBe(theirs.sign(digest).serialized)
        expect(Secp256k1.recover(digest, signature)).toBe(key.publicKey)
        expect(Secp256k1.recoverAddress(digest, signature)).toBe(computeAddress(text))
        expect(Secp256k1.prover(key.publicKey)(digest, signature)).toBe(theirs.sign(digest).serialized)
      }),
      { numRuns: 60 }
    )
  })

  it("recovers what ethers recovers of any r, s and v, and nothing where ethers finds nothing", () => {
    const scalar = fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
      fc.constantFrom(0n, 1n, 2n, Secp256k1.order, Secp256k1.order - 1n, Secp256k1.largestS)
    )
    fc.assert(
      fc.property(anyDigest, scalar, scalar, fc.constantFrom(27 as const, 28 as const), (digest, r, s, v) => {
        const theirs = Either.try(() =>
          SigningKey.recoverPublicKey(digest, { r: toBeHex(r, 32), s: toBeHex(s, 32), v }).slice(2)
        )
        expect(Secp256k1.recover(digest, { r, s, v })).toBe(Either.getOrNull(theirs))
      }),
      { numRuns: 60 }
    )
  })

  it("takes no key of zero or beyond the order", () => {
    for (const bytes of ["00".repeat(32), "ff".repeat(32), Secp256k1.order.toString(16)])
      expect(Either.isLeft(Secp256k1.privateKey(Hex.unsafe32(`0x${bytes}`)))).toBe(true)
    expect(
      Either.isRight(Secp256k1.privateKey(Hex.unsafe32(`0x${(Secp256k1.order - 1n).toString(16)}`)))
    ).toBe(true)
  })

  it("reads both forms of a point and refuses everything else", () => {
    fc.assert(
      fc.property(privateKey, (text) => {
        const { compressedPublicKey, publicKey } = new SigningKey(text)
        expect(Secp256k1.fromPoint(compressedPublicKey.slice(2))).toBe(publicKey.slice(2))
        expect(Secp256k1.fromPoint(publicKey.slice(2))).toBe(publicKey.slice(2))
      }),
      { numRuns: 20 }
    )
    // x of 5 is on no point of the curve.
    for (const digits of [
      "",
      "00",
      `02${"5".padStart(64, "0")}`,
      `02${"ff".repeat(32)}`,
      `04${"11".repeat(64)}`,
      `05${"11".repeat(32)}`,
      "z".repeat(66)
    ])
      expect(Secp256k1.fromPoint(digits)).toBeNull()
  })

  it("proves nothing of what is no key", () => {
    expect(Secp256k1.prover("04")(Hex.unsafe32(`0x${"11".repeat(32)}`), { r: 1n, s: 1n })).toBeNull()
  })
})
