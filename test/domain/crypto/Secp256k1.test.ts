import { afterEach, describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { computeAddress, SigningKey, toBeHex } from "ethers"
import * as fc from "fast-check"
import * as Secp256k1 from "../../../src/domain/crypto/Secp256k1.js"
import * as Accelerated from "../../../src/domain/primitives/Accelerated.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { bytes32, forAll } from "../generators.js"

const privateKey = fc
  .bigInt({ min: 1n, max: Secp256k1.order - 1n })
  .map((n) => `0x${n.toString(16).padStart(64, "0")}`)
const publicKeyOf = (key: string) => new SigningKey(key).publicKey.slice(2)
const signed = (key: string, digest: string) => {
  const { r, s, v } = new SigningKey(key).sign(digest)
  return { r: BigInt(r), s: BigInt(s), v }
}

const word = (value: bigint) => value.toString(16).padStart(64, "0")
const field = 2n ** 256n - 2n ** 32n - 977n

/** A private key. */
const one = `0x${word(1n)}`

const power = (base: bigint, exponent: bigint): bigint => {
  let [result, square] = [1n, base]
  for (let rest = exponent; rest > 0n; rest >>= 1n, square = (square * square) % field)
    if (rest % 2n === 1n) result = (result * square) % field
  return result
}

describe("a public key", () => {
  it("a public key is a point of the curve, and has the address that ethers computes", () => {
    forAll(
      [privateKey],
      (key) => {
        const publicKey = publicKeyOf(key)
        expect(Secp256k1.isPublicKey(publicKey)).toBe(true)
        expect(Secp256k1.addressOf(publicKey)).toBe(computeAddress(key))
      },
      { numRuns: 50 }
    )
  })

  it("a key with a changed digit, a coordinate beyond the field or another form is refused", () => {
    const publicKey = publicKeyOf(`0x${"11".repeat(32)}`)
    forAll([fc.integer({ min: 2, max: 129 }), fc.integer({ min: 1, max: 15 })], (at, by) => {
      const digit = (Number.parseInt(publicKey[at] ?? "0", 16) ^ by).toString(16)
      const changed = publicKey.slice(0, at) + digit + publicKey.slice(at + 1)
      expect(Secp256k1.isPublicKey(changed)).toBe(false)
    })
    const y = BigInt(`0x${publicKey.slice(66)}`)
    // x of 1 is on the curve, and so it would be with the field added.
    const one = "4218f20ae6c646b363db68605822fb14264ca8d2587fdd6fbc750d587e76a7ee"
    expect(Secp256k1.isPublicKey(`04${"1".padStart(64, "0")}${one}`)).toBe(true)
    expect(Secp256k1.isPublicKey(`04${(field + 1n).toString(16)}${one}`)).toBe(false)
    expect(Secp256k1.isPublicKey(publicKey.slice(0, 66) + (field - y).toString(16).padStart(64, "0"))).toBe(
      true
    )
    const others = [`0x${publicKey}`, publicKey.toUpperCase(), `06${publicKey.slice(2)}`, `${publicKey}00`]
    for (const text of ["", "04", ...others, `00${publicKey}`, "0".repeat(130), `04${"0".repeat(128)}`])
      expect(Secp256k1.isPublicKey(text)).toBe(false)
  })
})

describe("a coordinate beyond the field", () => {
  it("a coordinate beyond the field is refused, even when y modulo the field is 1", () => {
    // The prime is 7 modulo 9, so a cube has the root a^((p + 2) / 9).
    const root = (cube: bigint) => power(cube, (field + 2n) / 9n)
    const y =
      Array.from({ length: 64 }, (_, at) => BigInt(at + 3)).find(
        (each) => power(root(each * each - 7n), 3n) === each * each - 7n
      ) ?? 0n
    const x = word(root(y * y - 7n))
    expect(Secp256k1.isPublicKey(`04${x}${word(y)}`)).toBe(true)
    expect(Secp256k1.isPublicKey(`04${x}${word(y + field)}`)).toBe(false)
  })
})

describe("a signature", () => {
  it("a signature proves no other key or digest, nor do random r and s", () => {
    forAll(
      [privateKey, privateKey, bytes32, bytes32, fc.bigInt(), fc.bigInt()],
      (key, other, digest, another, r, s) => {
        fc.pre(key !== other && digest !== another)
        const signature = signed(key, digest)
        const prove = (digest: Hex.Bytes32, given: { r: bigint; s: bigint }) =>
          Secp256k1.prove(publicKeyOf(key), digest, given)
        expect(Secp256k1.prove(publicKeyOf(other), digest, signature)).toBeNull()
        expect(prove(another, signature)).toBeNull()
        expect(prove(digest, { r, s })).toBeNull()
        expect(prove(digest, { r: signature.r, s: signature.s + Secp256k1.order })).toBeNull()
      },
      { numRuns: 30 }
    )
  })
})

describe("results of the curve library", () => {
  const ends = [0n, 1n, Secp256k1.order - 1n, Secp256k1.order, 2n ** 256n - 1n]
  const edge = fc.constantFrom(...ends.map((value) => Hex.unsafe32(`0x${word(value)}`)))
  const anyDigest = fc.oneof({ weight: 4, arbitrary: bytes32 }, edge)

  it("secp256k1 computes key, signature, signer and proof as ethers does", () => {
    forAll(
      [privateKey, anyDigest],
      (text, digest) => {
        const key = Result.getOrThrow(Secp256k1.privateKey(Hex.unsafe32(text)))
        const theirs = new SigningKey(text)
        expect(key.publicKey).toBe(theirs.publicKey.slice(2))
        const signature = key.sign(digest)
        expect(Secp256k1.serialize(signature)).toBe(theirs.sign(digest).serialized)
        expect(Secp256k1.recover(digest, signature)).toBe(key.publicKey)
        expect(Secp256k1.recoverAddress(digest, signature)).toBe(computeAddress(text))
        for (const s of [signature.s, Secp256k1.order - signature.s])
          expect(Secp256k1.prove(key.publicKey, digest, { r: signature.r, s })).toBe(
            theirs.sign(digest).serialized
          )
      },
      { numRuns: 60 }
    )
  })

  it("secp256k1 recovers a signer of any r, s and v exactly when ethers does", () => {
    const scalar = fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
      fc.constantFrom(0n, 1n, 2n, Secp256k1.order, Secp256k1.order - 1n, Secp256k1.largestS)
    )
    forAll(
      [anyDigest, scalar, scalar, fc.constantFrom(27 as const, 28 as const)],
      (digest, r, s, v) => {
        const theirs = Result.try(() =>
          SigningKey.recoverPublicKey(digest, { r: toBeHex(r, 32), s: toBeHex(s, 32), v }).slice(2)
        )
        expect(Secp256k1.recover(digest, { r, s, v })).toBe(Result.getOrNull(theirs))
      },
      { numRuns: 60 }
    )
  })

  it("secp256k1 refuses a key of zero or beyond the order", () => {
    for (const bytes of ["00".repeat(32), "ff".repeat(32), Secp256k1.order.toString(16)])
      expect(Secp256k1.privateKey(Hex.unsafe32(`0x${bytes}`))).toEqual(
        Result.fail("expected 1 to the order of secp256k1 less one")
      )
    expect(
      Result.isSuccess(Secp256k1.privateKey(Hex.unsafe32(`0x${(Secp256k1.order - 1n).toString(16)}`)))
    ).toBe(true)
  })

  it("secp256k1 reads only the two forms of a point", () => {
    forAll(
      [privateKey],
      (text) => {
        const { compressedPublicKey, publicKey } = new SigningKey(text)
        expect(Secp256k1.fromPoint(compressedPublicKey.slice(2))).toBe(publicKey.slice(2))
        expect(Secp256k1.fromPoint(publicKey.slice(2))).toBe(publicKey.slice(2))
      },
      { numRuns: 20 }
    )
    // x of 5 is on no point of the curve.
    const ours = publicKeyOf(one)
    const others = [`04${"11".repeat(64)}`, `05${"11".repeat(32)}`, "z".repeat(66), `ff${ours}`, `${ours}ff`]
    const noX = [`02${"5".padStart(64, "0")}`, `02${"ff".repeat(32)}`]
    for (const digits of ["", "00", ...noX, ...others, ours.toUpperCase()])
      expect(Secp256k1.fromPoint(digits)).toBeNull()
  })

  it("proving fails when the signature's point is infinity: the digest is the key times r, negated", () => {
    forAll(
      [privateKey, fc.bigInt({ min: 1n, max: Secp256k1.largestS })],
      (text, s) => {
        const r = BigInt(`0x${publicKeyOf(one).slice(2, 66)}`)
        const digest = Hex.unsafe32(`0x${word(Secp256k1.order - ((r * BigInt(text)) % Secp256k1.order))}`)
        expect(Secp256k1.prove(publicKeyOf(text), digest, { r, s })).toBeNull()
      },
      { numRuns: 10 }
    )
  })

  it("proving fails for a malformed key", () => {
    expect(Secp256k1.prove("04", Hex.unsafe32(`0x${"11".repeat(32)}`), { r: 1n, s: 1n })).toBeNull()
  })
})

describe("native code", () => {
  afterEach(() => Accelerated.use(Accelerated.none))

  /** Records calls; recovers the key of 1 only for an odd y. */
  const recording = () => {
    const [digests, signatures] = [[] as string[], [] as string[]]
    Accelerated.use({
      ...Accelerated.none,
      secp256k1: {
        sign: (digest) => {
          digests.push(Hex.fromBytes(digest))
          return { odd: true, signature: new Uint8Array(64).fill(1) }
        },
        recover: (_, signature, odd) => {
          signatures.push(Hex.fromBytes(signature))
          return odd ? Hex.toBytes(Hex.unsafe(`0x${publicKeyOf(one)}`)) : null
        }
      }
    })
    return { digests, signatures }
  }
  const digest = Hex.unsafe32(`0x${"11".repeat(32)}`)
  const { largestS, order } = Secp256k1

  it("native code signs digests modulo the order", () => {
    const { digests } = recording()
    const key = Result.getOrThrow(Secp256k1.privateKey(Hex.unsafe32(one)))
    for (const value of [0n, 1n, order - 1n, order, order + 1n, 2n ** 256n - 1n])
      expect(key.sign(Hex.unsafe32(`0x${word(value)}`)).v).toBe(28)
    expect(digests).toEqual(
      [0n, 1n, order - 1n, 0n, 1n, 2n ** 256n - 1n - order].map((value) => `0x${word(value)}`)
    )
  })

  it("native code recovers signers only for r and s in their ranges, s in its lower half", () => {
    const { signatures } = recording()
    for (const none of [0n, -1n, order, order + 1n]) {
      expect(Secp256k1.recover(digest, { r: none, s: 1n, v: 28 })).toBeNull()
      expect(Secp256k1.recover(digest, { r: 1n, s: none, v: 28 })).toBeNull()
    }
    expect(Secp256k1.recover(digest, { r: 1n, s: largestS + 1n, v: 28 })).toBeNull()
    expect(Secp256k1.recoverAddress(digest, { r: 1n, s: largestS + 1n, v: 28 })).toBeNull()
    expect(signatures).toEqual([])
    expect(Secp256k1.recover(digest, { r: order - 1n, s: largestS, v: 28 })).toBe(publicKeyOf(one))
    expect(Secp256k1.recover(digest, { r: 1n, s: 1n, v: 27 })).toBeNull()
    expect(signatures).toEqual([`0x${word(order - 1n)}${word(largestS)}`, `0x${word(1n)}${word(1n)}`])
  })

  it("native code proves with both points and the low form of s, never for an invalid signature", () => {
    const { signatures } = recording()
    const prove = (digest: Hex.Bytes32, given: { r: bigint; s: bigint }) =>
      Secp256k1.prove(publicKeyOf(one), digest, given)
    for (const none of [0n, -1n, order, order + 1n]) {
      expect(prove(digest, { r: none, s: 1n })).toBeNull()
      expect(prove(digest, { r: 1n, s: none })).toBeNull()
    }
    expect(signatures).toEqual([])
    expect(prove(digest, { r: 1n, s: largestS })).toBe(`0x${word(1n)}${word(largestS)}1c`)
    expect(prove(digest, { r: 1n, s: largestS + 1n })).toBe(`0x${word(1n)}${word(largestS)}1c`)
    expect(signatures).toHaveLength(4)
    expect(Secp256k1.prove(publicKeyOf(`0x${word(2n)}`), digest, { r: 1n, s: 1n })).toBeNull()
  })
})
