import { createPublicKey, ECDH, type KeyObject, sign, verify } from "node:crypto"
import { afterEach, describe, expect, it } from "@effect/vitest"
import { p256 } from "@noble/curves/p256"
import * as fc from "fast-check"
import * as P256 from "../../../src/domain/crypto/P256.js"
import * as Accelerated from "../../../src/domain/primitives/Accelerated.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { newPasskey } from "../../support/suite/Keys.js"
import { bytes32, forAll } from "../generators.js"

const word = (value: bigint) => Hex.unsafe32(`0x${value.toString(16).padStart(64, "0")}`)
const key = fc.constant(null).map(() => {
  const { privateKey, publicKey } = newPasskey()
  return { privateKey, x: Hex.unsafe32(publicKey.x), y: Hex.unsafe32(publicKey.y) }
})
const field = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn
const few = { numRuns: 20 }
const signed = (key: KeyObject, message: Uint8Array) => {
  const raw = sign("sha256", message, { key, dsaEncoding: "ieee-p1363" }).toString("hex")
  return { r: Hex.unsafe32(`0x${raw.slice(0, 64)}`), s: Hex.unsafe32(`0x${raw.slice(64)}`) }
}

/** What OpenSSL says. */
const isPoint = (point: string): boolean => {
  try {
    ECDH.convertKey(point, "prime256v1", "hex", "hex", "uncompressed")
    return true
  } catch {
    return false
  }
}

describe("P-256", () => {
  it("P-256 has the points that OpenSSL makes, compressed and uncompressed", () => {
    forAll(
      [key],
      ({ x, y }) => {
        const point = `04${x.slice(2)}${y.slice(2)}`
        expect(P256.isPublicKey({ x, y })).toBe(true)
        expect(P256.fromPoint(point)).toEqual({ x, y })
        const compressed = ECDH.convertKey(point, "prime256v1", "hex", "hex", "compressed").toString()
        expect(P256.fromPoint(compressed)).toEqual({ x, y })
        const [even, odd] = ["02", "03"].map((sign) => P256.fromPoint(sign + x.slice(2)))
        expect([even, odd]).toContainEqual({ x, y })
        expect(BigInt(even?.y ?? 0) + BigInt(odd?.y ?? 0)).toBe(field)
      },
      few
    )
  })

  it("P-256 has no points off the curve", () => {
    forAll(
      [bytes32, bytes32, fc.constantFrom("02", "03")],
      (x, y, sign) => {
        expect(P256.fromPoint(`04${x.slice(2)}${y.slice(2)}`) !== null).toBe(
          isPoint(`04${x.slice(2)}${y.slice(2)}`)
        )
        expect(P256.fromPoint(sign + x.slice(2)) !== null).toBe(isPoint(sign + x.slice(2)))
      },
      { numRuns: 100 }
    )
  })

  it("P-256 has no point with a coordinate above the prime, even if valid modulo it", () => {
    // (0, sqrt(b)) is a point, and 0 and the prime are the same modulo it.
    const zero = P256.fromPoint(`02${"00".repeat(32)}`)
    expect(zero?.x).toBe(word(0n))
    expect(P256.isPublicKey({ x: word(field), y: zero?.y ?? word(0n) })).toBe(false)
    expect(P256.fromPoint(`02${field.toString(16)}`)).toBeNull()
    expect(P256.isPublicKey({ x: word(0n), y: word(0n) })).toBe(false)
  })

  it("P-256 refuses text that is not a point", () => {
    const { x, y } = newPasskey().publicKey
    const good = `04${x.slice(2)}${y.slice(2)}`
    const short = `02${x.slice(2)}`
    const others = [`05${good.slice(2)}`, `06${good.slice(2)}`, good.slice(0, 128), `${good}00`, `00${good}`]
    for (const text of ["", "00", ...others, short.repeat(2), `${short}00`, `${short}0`])
      expect(P256.fromPoint(text), text).toBeNull()
    expect(P256.fromPoint(good.toUpperCase())).toBeNull()
    forAll([fc.string()], (text) => P256.fromPoint(text) === null)
  })

  it("P-256 takes the signatures that OpenSSL makes, in both forms, and no others", () => {
    forAll(
      [key, bytes32, bytes32],
      ({ privateKey, x, y }, message, other) => {
        const bytes = Buffer.from(message.slice(2), "hex")
        const signature = signed(privateKey, bytes)
        const flipped = { r: signature.r, s: word(P256.order - BigInt(signature.s)) }
        expect(P256.verify({ x, y }, message, signature)).toBe(true)
        expect(P256.verify({ x, y }, message, flipped)).toBe(true)
        expect([signature, flipped].filter(P256.isLow)).toEqual([P256.toLow(signature)])
        expect(P256.toLow(flipped)).toEqual(P256.toLow(signature))
        if (other !== message) expect(P256.verify({ x, y }, other, signature)).toBe(false)
        expect(P256.verify({ x, y }, message, { r: signature.s, s: signature.r })).toBe(false)
      },
      few
    )
  })

  it("P-256 agrees with OpenSSL on signatures at the ends of their ranges", () => {
    const { publicKey, privateKey } = newPasskey()
    const keyObject = createPublicKey(privateKey)
    const [x, y] = [Hex.unsafe32(publicKey.x), Hex.unsafe32(publicKey.y)]
    const ends = [0n, 1n, P256.largestS, P256.largestS + 1n, P256.order - 1n, P256.order, 2n ** 256n - 1n]
    const message = Buffer.from("castellan")
    for (const [r, s] of ends.flatMap((r) => ends.map((s) => [r, s] as const))) {
      const signature = { r: word(r), s: word(s) }
      const raw = Buffer.from(word(r).slice(2) + word(s).slice(2), "hex")
      expect(P256.verify({ x, y }, Hex.fromBytes(message), signature)).toBe(
        verify("sha256", message, { key: keyObject, dsaEncoding: "ieee-p1363" }, raw)
      )
      const isOne = r > 0n && r < P256.order && s > 0n && s < P256.order
      expect(P256.inRanges(signature)).toBe(isOne)
      const low = isOne && s > P256.largestS ? P256.order - s : s
      expect(P256.toLow(signature)).toEqual({ r: word(r), s: word(low) })
    }
  })

  it("P-256 takes no signature by an invalid key", () => {
    const signature = { r: word(1n), s: word(1n) }
    for (const off of [word(0n), word(1n), word(field), word(2n ** 256n - 1n)])
      expect(P256.verify({ x: off, y: off }, word(1n), signature)).toBe(false)
  })

  it("P-256 is the curve of the standard", () => {
    expect(P256.order).toBe(p256.CURVE.n)
    expect(P256.largestS).toBe(p256.CURVE.n / 2n)
    expect(field).toBe(p256.CURVE.p)
  })
})

describe("the signer among several keys", () => {
  afterEach(() => Accelerated.use(Accelerated.none))

  const message = word(42n)
  const { privateKey, publicKey } = newPasskey()
  const signer = { x: Hex.unsafe32(publicKey.x), y: Hex.unsafe32(publicKey.y) }
  const signature = signed(privateKey, Hex.toBytes(message))
  /** Keys that share a coordinate with the signer. */
  const near = [
    { x: signer.x, y: word(field - BigInt(signer.y)) },
    { x: signer.x, y: signer.x },
    { x: signer.y, y: signer.y }
  ]

  it("the signer is identified by both coordinates", () => {
    expect(P256.signedBy([signer], message, signature)).toBe(0)
    expect(P256.signedBy(near.slice(0, 1), message, signature)).toBeNull()
    expect(P256.signedBy(near, message, signature)).toBeNull()
    expect(P256.signedBy([...near, signer], message, signature)).toBe(3)
    expect(P256.signedBy([...near, signer], word(43n), signature)).toBeNull()
    expect(P256.signedBy([], message, signature)).toBeNull()
  })

  it("native code recovers the signer of well-formed signatures only", () => {
    const asked: Array<ReadonlyArray<string>> = []
    const verify = (...given: ReadonlyArray<Uint8Array>) => {
      asked.push(given.map(Hex.fromBytes))
      return false
    }
    Accelerated.use({ ...Accelerated.none, p256: { verify } })
    expect(P256.verify(signer, message, signature)).toBe(false)
    expect(asked).toEqual([[Hex.concat(signer.x, signer.y), message, Hex.concat(signature.r, signature.s)]])
    expect(P256.signedBy([signer, ...near], message, signature)).toBeNull()
    expect(asked).toHaveLength(5)
    for (const none of [0n, P256.order])
      for (const each of [
        { r: word(none), s: signature.s },
        { r: signature.r, s: word(none) }
      ])
        expect(P256.verify(signer, message, each)).toBe(false)
    expect(asked).toHaveLength(5)
  })
})
