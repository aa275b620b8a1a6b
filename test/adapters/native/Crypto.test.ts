import { sign } from "node:crypto"
import { createRequire } from "node:module"
import { afterEach, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Crypto from "../../../src/adapters/native/Crypto.js"
import * as P256 from "../../../src/domain/crypto/P256.js"
import * as Secp256k1 from "../../../src/domain/crypto/Secp256k1.js"
import * as Accelerated from "../../../src/domain/primitives/Accelerated.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import { bytes32 } from "../../domain/generators.js"
import { newPasskey } from "../../support/suite/Keys.js"

const loaded = await Effect.runPromise(Crypto.load())
afterEach(() => Accelerated.use(Accelerated.none))

/** The domain's own result, after native code computed the same. */
const same = <A>(compute: () => A): A => {
  Accelerated.use(Accelerated.none)
  const plain = compute()
  Accelerated.use(loaded)
  expect(compute()).toEqual(plain)
  return plain
}

const word = (value: bigint) => Hex.unsafe32(`0x${value.toString(16).padStart(64, "0")}`)
const scalar = (order: bigint) =>
  fc.oneof(
    fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
    fc.constantFrom(0n, 1n, 2n, order >> 1n, (order >> 1n) + 1n, order - 1n, order, 2n ** 256n - 1n)
  )

describe("loaded native code", () => {
  it("is everything", () => {
    expect(Object.values(loaded)).not.toContain(null)
  })

  it("hashes any bytes as the domain does", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 700 }), (bytes) => {
        same(() => Keccak.hash(Hex.fromBytes(bytes)))
      })
    )
    for (const length of [0, 135, 136, 137, 69_631, 69_632, 69_633, 139_264, 300_001]) {
      const bytes = Hex.fromBytes(Uint8Array.from({ length }, (_, at) => at % 251))
      same(() => Keccak.hash(bytes))
    }
  })

  it("signs, recovers and proves with secp256k1 as the domain does, at the ends of all ranges too", () => {
    const { order } = Secp256k1
    const digests = fc.oneof(bytes32, scalar(order).map(word))
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1n, max: order - 1n }),
        digests,
        digests,
        fc.boolean(),
        (secret, digest, other, high) => {
          const key = Result.getOrThrow(Secp256k1.privateKey(word(secret)))
          const { r, s, v } = same(() => key.sign(digest))
          const given = { r, s: high ? order - s : s }
          const parity = v === 27 ? 28 : 27
          expect(same(() => Secp256k1.recover(digest, { r, s, v }))).toBe(key.publicKey)
          expect(same(() => Secp256k1.recover(digest, { r, s, v: parity }))).not.toBe(key.publicKey)
          same(() => Secp256k1.recover(digest, { ...given, v }))
          same(() => Secp256k1.recover(other, { r, s, v }))
          expect(same(() => Secp256k1.prove(key.publicKey, digest, given))).not.toBeNull()
          same(() => Secp256k1.prove(key.publicKey, other, given))
          same(() => Secp256k1.prove(key.publicKey, digest, { r: s, s: r }))
        }
      ),
      { numRuns: 30 }
    )
    fc.assert(
      fc.property(
        digests,
        scalar(order),
        scalar(order),
        fc.constantFrom(27 as const, 28 as const),
        (digest, r, s, v) => {
          same(() => Secp256k1.recover(digest, { r, s, v }))
        }
      ),
      { numRuns: 60 }
    )
  })

  it("native P-256 verifies as the domain does: signatures, their other halves, and malformed ones", () => {
    const field = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn
    const { privateKey, publicKey } = newPasskey()
    const key = { x: Hex.unsafe32(publicKey.x), y: Hex.unsafe32(publicKey.y) }
    const others = Array.from({ length: 3 }, () => newPasskey().publicKey).map(({ x, y }) => ({
      x: Hex.unsafe32(x),
      y: Hex.unsafe32(y)
    }))
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const message = Hex.fromBytes(bytes)
        const raw = sign("sha256", bytes, { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("hex")
        const [r, s] = [Hex.unsafe32(`0x${raw.slice(0, 64)}`), Hex.unsafe32(`0x${raw.slice(64)}`)]
        for (const signature of [
          { r, s },
          { r, s: word(P256.order - BigInt(s)) }
        ]) {
          expect(same(() => P256.verify(key, message, signature))).toBe(true)
          expect(same(() => P256.signedBy([...others, key], message, signature))).toBe(others.length)
          expect(same(() => P256.signedBy(others, message, signature))).toBeNull()
        }
        expect(same(() => P256.verify(key, message, { r: s, s: r }))).toBe(false)
        expect(same(() => P256.verify({ x: key.y, y: key.x }, message, { r, s }))).toBe(false)
      }),
      { numRuns: 10 }
    )
    const small = P256.fromPoint(`02${"00".repeat(32)}`)
    if (small === null) throw new Error("there is a point with x = 0")
    const keys = [key, small, { x: word(field), y: small.y }, { x: small.x, y: word(field + 1n) }]
    fc.assert(
      fc.property(fc.constantFrom(...keys), scalar(P256.order), scalar(P256.order), (given, r, s) => {
        same(() => P256.verify(given, Hex.fromBytes(Buffer.from("x")), { r: word(r), s: word(s) }))
      }),
      { numRuns: 60 }
    )
  })
})

describe("native code that does not load", () => {
  const real = createRequire(import.meta.url)

  it("native code that does not load is replaced by the domain's own code", async () => {
    const broken = await Effect.runPromise(
      Crypto.load(() => {
        throw new Error("no such package")
      })
    )
    expect(broken).toMatchObject({ keccak: null, secp256k1: null })
    Accelerated.use(broken)
    expect(Keccak.hashText("")).toBe("0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
  })

  it("native code that computes wrong results does not load", async () => {
    const wrong = await Effect.runPromise(
      Crypto.load((name) => {
        if (name.startsWith("secp256k1"))
          return { ...(real(name) as object), ecdsaRecover: () => new Uint8Array(33) }
        const { createSHA3 } = real("hash-wasm/dist/sha3.umd.min.js")
        return { createKeccak: createSHA3 }
      })
    )
    expect(wrong).toMatchObject({ keccak: null, secp256k1: null })
  })
})
