import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { getBytes, hashMessage, Signature, SigningKey } from "ethers"
import * as fc from "fast-check"
import * as Der from "../../../src/domain/crypto/Der.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as PersonalMessage from "../../../src/domain/signature/PersonalMessage.js"
import * as SignatureFormat from "../../../src/domain/signature/SignatureFormat.js"
import * as Keys from "../../support/kms/Keys.js"
import { bytes32, forAll } from "../generators.js"

const digestOf = (message: string) => Result.map(PersonalMessage.bytes(message), PersonalMessage.digest)

describe("a personal message", () => {
  it("a personal message has the digest that ethers gives to its text", () => {
    forAll([fc.fullUnicodeString({ maxLength: 200 })], (text) => {
      fc.pre(!Hex.is(text))
      expect(digestOf(text)).toEqual(Result.succeed(hashMessage(text)))
    })
    expect(digestOf("hello world")).toEqual(
      Result.succeed("0xd9eba16ed0ecae432b71fe008c98cc872bb4cc214d3220a36f365326cf807d68")
    )
    expect(digestOf("")).toEqual(Result.succeed(hashMessage("")))
  })

  it("a 0x message with an even number of hex digits is bytes, of either case", () => {
    forAll([fc.uint8Array({ maxLength: 300 }), fc.boolean()], (bytes, upper) => {
      const digits = Buffer.from(bytes).toString("hex")
      const text = `0x${upper ? digits.toUpperCase() : digits}`
      expect(digestOf(text)).toEqual(Result.succeed(hashMessage(getBytes(`0x${digits}`))))
    })
    for (const text of ["0x1", "0xzz", "0X11", "11", " 0x11"])
      expect(digestOf(text)).toEqual(Result.succeed(hashMessage(text)))
  })

  it("a personal message must be well-formed text", () => {
    for (const text of ["\ud800", "a\udc00b", "\udc00\ud800"])
      expect(Result.isFailure(digestOf(text))).toBe(true)
  })
})

/** Signatures, also of small r and s, which are not made by a key. */
const small = fc.integer({ min: 1, max: 300 }).map((n) => `0x${n.toString(16).padStart(64, "0")}`)
const scalar = fc.oneof(bytes32, small)
const signatures = fc.tuple(scalar, scalar, fc.constantFrom(27, 28)).map(([r, s, v]) => {
  const low = (Number.parseInt(s.slice(2, 3), 16) % 8).toString(16) + s.slice(3)
  return Hex.unsafe(`${r}${low}${v.toString(16)}`)
})

describe("a signature", () => {
  it("a signature is compacted as EIP-2098 defines", () => {
    // The vectors of EIP-2098.
    const key = new SigningKey("0x1234567890123456789012345678901234567890123456789012345678901234")
    for (const [message, compact] of [
      [
        "Hello World",
        "0x68a020a209d3d56c46f38cc50a33f704f4a9a10a59377f8dd762ac66910e9b907e865ad05c4035ab5792787d4a0297a43617ae897930a6fe4d822b8faea52064"
      ],
      [
        "It's a small(er) world",
        "0x9328da16089fcba9bececa81663203989f2df5fe1faa6291a45381c81bd17f76939c6d6b623b42da56557e5e734a43dc83345ddfadec52cbe24d0cc64f550793"
      ]
    ] as const) {
      const { serialized } = key.sign(hashMessage(message))
      expect(SignatureFormat.write(Hex.unsafe(serialized), "compact")).toBe(compact)
    }
    forAll([signatures], (signature) => {
      const theirs = Signature.from(signature)
      expect(SignatureFormat.write(signature, "compact")).toBe(theirs.compactSerialized)
      expect(SignatureFormat.write(signature, "hex")).toBe(theirs.serialized)
      expect(SignatureFormat.write(signature, "rsv")).toEqual({ r: theirs.r, s: theirs.s, v: theirs.v })
    })
  })

  it("a signature is written in DER with r and s in their shortest form", () => {
    forAll([signatures], (signature) => {
      const { r, s } = Signature.from(signature)
      fc.pre(BigInt(r) > 0n && BigInt(s) > 0n)
      const der = SignatureFormat.write(signature, "der")
      expect(der).toBe(`0x${Keys.der({ r: BigInt(r), s: BigInt(s) }).toString("hex")}`)
      expect(Der.signature(Hex.unsafe(String(der)))).toEqual(Result.succeed({ r: BigInt(r), s: BigInt(s) }))
    })
  })
})
