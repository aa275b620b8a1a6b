import { createPublicKey, generateKeyPairSync } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Passkey from "../../../src/domain/wallet/Passkey.js"
import {
  cose,
  coseMembers,
  encodings,
  halves,
  type Members,
  spellings,
  spki
} from "../../support/passkeys/Encodings.js"
import { newPasskey } from "../../support/suite/Keys.js"
import { forAll } from "../generators.js"

const passkeys = Array.from({ length: 4 }, newPasskey)
const [first = newPasskey(), second = newPasskey()] = passkeys
const keyOf = ({ publicKey }: typeof first) => ({
  x: Hex.unsafe32(publicKey.x),
  y: Hex.unsafe32(publicKey.y)
})
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64")
const whole = (passkey: typeof first) => base64(Buffer.concat([...halves(passkey)]))
const refusal = (...entries: ReadonlyArray<string>) => Result.getOrThrow(Result.flip(Passkey.parse(entries)))

describe("A passkey's public key", () => {
  const encoded = passkeys.flatMap((passkey) =>
    Object.entries(encodings(passkey, createPublicKey(passkey.privateKey))).map(
      ([name, bytes]) => [name, bytes, keyOf(passkey)] as const
    )
  )

  it.each(encoded)("a passkey is read from %s", (_, bytes, key) => {
    for (const text of spellings(bytes)) expect(Passkey.parse([text])).toEqual(Result.succeed([key]))
  })

  it("a passkey is read as X and Y when these are the only two entries of 32 bytes", () => {
    const [x, y] = halves(first).map(base64)
    expect(Passkey.parse([x ?? "", y ?? ""])).toEqual(Result.succeed([keyOf(first)]))
    const lone = "32 bytes are one coordinate: the only two entries are then X and Y"
    expect(refusal(x ?? "")).toEqual({ index: 0, message: lone })
    expect(refusal(whole(second), x ?? "")).toEqual({ index: 1, message: lone })
    expect(refusal(x ?? "", y ?? "", whole(second))).toEqual({ index: 0, message: lone })
    expect(refusal(x ?? "", base64(Buffer.alloc(31, 1)))).toEqual({ index: 0, message: lone })
    expect(refusal(y ?? "", x ?? "").message).toBe("the coordinates are of no point of the curve P-256")
  })

  it("several passkeys keep their order, in any encodings", () => {
    forAll([fc.shuffledSubarray([0, 1, 2, 3]), fc.nat()], (order, choice) => {
      const chosen = order.flatMap((index) => passkeys[index] ?? [])
      const entries = chosen.map((passkey, at) => {
        const all = Object.values(encodings(passkey, createPublicKey(passkey.privateKey)))
        return base64(all[(choice + at) % all.length] ?? Buffer.alloc(0))
      })
      expect(Passkey.parse(entries)).toEqual(Result.succeed(chosen.map(keyOf)))
    })
  })

  it("a passkey is refused when given twice, in any encodings", () => {
    const spellingsOfFirst = Object.values(encodings(first, createPublicKey(first.privateKey))).map(base64)
    for (const again of spellingsOfFirst)
      expect(refusal(whole(first), whole(second), again)).toEqual({
        index: 2,
        message: "entry 0 is the same key"
      })
  })

  const [x, y] = halves(first)
  const off = Buffer.from(y)
  off[31] = (off[31] ?? 0) ^ 1
  const curve = (namedCurve: string) => spki(generateKeyPairSync("ec", { namedCurve }).publicKey)
  const changed = (label: number, value: Members[number][1] | null) =>
    cose(
      coseMembers(first).flatMap(([each, is]) =>
        each !== label ? [[each, is] as const] : value === null ? [] : [[each, value] as const]
      )
    )
  const [offCurve, noSpki, otherDer, noCose, otherCose] = [
    "the coordinates are of no point of the curve P-256",
    "the DER is not a SubjectPublicKeyInfo of a P-256 point",
    "the DER is a key of another algorithm or curve than P-256",
    "the CBOR is not a COSE_Key of a P-256 point",
    "the COSE_Key is of another type, curve or algorithm than ES256 on P-256"
  ] as const

  it.each([
    ["off the curve", Buffer.concat([x, off]), offCurve],
    ["off the curve, uncompressed", Buffer.concat([Buffer.from([4]), x, off]), offCurve],
    ["zero", Buffer.alloc(64), offCurve],
    ["no x of the curve", Buffer.concat([Buffer.from([2]), Buffer.alloc(32, 255)]), offCurve],
    ["of secp256k1", curve("secp256k1"), otherDer],
    ["of RSA", spki(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey), otherDer],
    ["DER that ends early", spki(createPublicKey(first.privateKey)).subarray(0, -1), noSpki],
    ["COSE of another algorithm", changed(3, -35), otherCose],
    ["COSE without X", changed(-2, null), noCose],
    ["COSE with a Y off the curve", changed(-3, new Uint8Array(off)), noCose]
  ])("a passkey is refused when it is %s", (_, bytes, message) => {
    expect(refusal(base64(bytes))).toEqual({ index: 0, message })
  })

  it("a malformed passkey is refused with its entry and the expected form", () => {
    const shapes =
      "expected X || Y (64 bytes), 04 || X || Y (65), a compressed point (33), SubjectPublicKeyInfo in DER or a COSE_Key in CBOR, but the entry has"
    expect(refusal(whole(first), "AQID")).toEqual({ index: 1, message: `${shapes} 3 bytes` })
    expect(refusal("").message).toBe(`${shapes} 0 bytes`)
    expect(refusal(base64(Buffer.alloc(31, 1)), base64(y)).message).toBe(`${shapes} 31 bytes`)
    expect(refusal("a b").message).toBe("expected base64 or base64url, without white space")
    expect(refusal("A".repeat(1_024)).message).toBe(`${shapes} 768 bytes`)
    expect(refusal("A".repeat(1_025)).message).toBe("expected at most 1024 characters")
  })

  it("a passkey is a point by its length and its first byte together", () => {
    const [x, y] = halves(first).map((half) => Buffer.from(half).toString("hex"))
    const read = (digits: string) => refusal(base64(Buffer.from(digits, "hex"))).message
    const shape = "expected X || Y (64 bytes)"
    for (const digits of [
      `02${x}${y}`,
      `03${x}${y}`,
      `05${x}`,
      `04${x}`,
      `04${x}${y}00`,
      `02${x}00`,
      `0502${x}`.slice(0, 66)
    ])
      expect(read(digits)).toContain(shape)
    expect(read(`04${x}${x}`)).toBe("the coordinates are of no point of the curve P-256")
  })

  it("a passkey of any bytes is a key or refused", () => {
    const start = fc.constantFrom("", "02", "04", "30", "3059", "a5", "a5010203", "bf")
    forAll(
      [start, fc.uint8Array({ maxLength: 120 })],
      (begin, bytes) => {
        const text = base64(Buffer.concat([Buffer.from(begin, "hex"), bytes]))
        const read = Passkey.parse([text])
        if (Result.isFailure(read)) expect(read.failure.index).toBe(0)
      },
      { numRuns: 2_000 }
    )
    forAll([fc.array(fc.string())], (entries) => Result.isResult(Passkey.parse(entries)))
    expect(Passkey.parse([])).toEqual(Result.succeed([]))
  })

  it("a passkey is read from the COSE_Key of the WebAuthn specification's test vectors", () => {
    // W3C Web Authentication Level 3, section 16, "ES256 Credential with No Attestation" (W3C Document License).
    const published =
      "a5010203262001215820afefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61225820930a56b87a2fca66334b03458abf879717c12cc68ed73290af2e2664796b9220"
    expect(Passkey.parse([base64(Buffer.from(published, "hex"))])).toEqual(
      Result.succeed([
        {
          x: "0xafefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61",
          y: "0x930a56b87a2fca66334b03458abf879717c12cc68ed73290af2e2664796b9220"
        }
      ])
    )
  })
})
