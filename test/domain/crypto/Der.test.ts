import { createECDH, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { SigningKey } from "ethers"
import * as fc from "fast-check"
import * as Der from "../../../src/domain/crypto/Der.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { bytes32, forAll, hex } from "../generators.js"

const bytes = (buffer: Uint8Array) => Hex.unsafe(`0x${Buffer.from(buffer).toString("hex")}`)
const der = (...parts: ReadonlyArray<string>) => Hex.unsafe(`0x${parts.join("")}`)
const size = (digits: string) => {
  const length = digits.length / 2
  return (
    (length < 128 ? "" : length < 256 ? "81" : "82") + length.toString(16).padStart(length < 256 ? 2 : 4, "0")
  )
}
const element = (tag: string, body: string) => `${tag}${size(body)}${body}`
const integer = (body: string) => element("02", body)
const sequence = (...parts: ReadonlyArray<string>) => element("30", parts.join(""))
const refused = (text: Hex.Hex) => expect(Either.isLeft(Der.signature(text)), text).toBe(true)
const problem = (text: Hex.Hex) => Either.getOrNull(Either.flip(Der.publicKey(text)))

const scalar = bytes32.filter((key) => BigInt(key) > 0n && BigInt(key) < 2n ** 255n)

describe("a DER signature", () => {
  it("is read as node:crypto writes it", () => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "secp256k1" })
    forAll([hex()], (text) => {
      const message = Buffer.from(text.slice(2), "hex")
      const signature = sign("sha256", message, privateKey)
      const { r, s } = Either.getOrThrow(Der.signature(bytes(signature)))
      const compact = Buffer.from(r.toString(16).padStart(64, "0") + s.toString(16).padStart(64, "0"), "hex")
      expect(verify("sha256", message, { key: publicKey, dsaEncoding: "ieee-p1363" }, compact)).toBe(true)
    })
  })

  it.prop(
    "holds the r and s that ethers wrote",
    [scalar, bytes32],
    ([key, digest]) => {
      const signature = new SigningKey(key).sign(digest)
      const compact = (value: string) => {
        const digits = BigInt(value).toString(16)
        const even = digits.padStart(digits.length + (digits.length % 2), "0")
        return /^[89a-f]/.test(even) ? `00${even}` : even
      }
      const read = Either.getOrThrow(
        Der.signature(der(sequence(integer(compact(signature.r)), integer(compact(signature.s)))))
      )
      expect(read).toEqual({ r: BigInt(signature.r), s: BigInt(signature.s) })
    },
    { fastCheck: { numRuns: 50 } }
  )

  it("may have r and s of one byte up to 32, with a zero byte only where the sign needs it", () => {
    expect(Der.signature(der(sequence(integer("01"), integer("7f"))))).toEqual(
      Either.right({ r: 1n, s: 127n })
    )
    expect(Der.signature(der(sequence(integer("0080"), integer(`00${"ff".repeat(32)}`))))).toEqual(
      Either.right({ r: 128n, s: 2n ** 256n - 1n })
    )
  })

  it("has no integer that is zero, negative, empty, padded or longer than 32 bytes", () => {
    for (const bad of [
      "00",
      "80",
      "ff01",
      "",
      "0001",
      "007f",
      "0000ff",
      "01".repeat(33),
      `00${"ff".repeat(33)}`
    ]) {
      refused(der(sequence(integer(bad), integer("01"))))
      refused(der(sequence(integer("01"), integer(bad))))
    }
  })

  it("has nothing after it, in it or missing from it", () => {
    const [r, s] = [integer("11"), integer("22")]
    expect(Either.isRight(Der.signature(der(sequence(r, s))))).toBe(true)
    refused(der(sequence(r, s), "00"))
    refused(der(sequence(r, s, integer("33"))))
    refused(der(sequence(r, s, "0500")))
    refused(der(sequence(r)))
    refused(der(element("31", r + s)))
    refused(der(sequence(element("04", "11"), s)))
    refused(Hex.empty)
  })

  it("says every length in the shortest way", () => {
    refused(der("308106", integer("11"), integer("22")))
    refused(der("30820006", integer("11"), integer("22")))
    refused(der("3080", integer("11"), integer("22"), "0000"))
    refused(der("30830000", "06", integer("11"), integer("22")))
    refused(der("3007", "02810111", integer("22")))
    refused(der("30ff", integer("11"), integer("22")))
  })

  it("is refused when cut anywhere, and never crashes the reader", () => {
    const whole = sequence(integer(`00${"ff".repeat(32)}`), integer("7f".repeat(32)))
    for (let end = 0; end < whole.length; end += 2) refused(der(whole.slice(0, end)))
    forAll([hex()], (garbage) => {
      expect(Either.isEither(Der.signature(garbage))).toBe(true)
      expect(Either.isLeft(Der.publicKey(garbage))).toBe(true)
    })
  })

  it("has one form: what is read writes back to the same bytes", () => {
    const written = (value: bigint) => {
      const digits = value.toString(16)
      const even = digits.padStart(digits.length + (digits.length % 2), "0")
      return integer(/^[89a-f]/.test(even) ? `00${even}` : even)
    }
    const nearly = fc
      .tuple(hex(34), hex(34))
      .map(([r, s]) => der(sequence(integer(r.slice(2)), integer(s.slice(2)))))
    forAll(
      [nearly],
      (text) => {
        const read = Der.signature(text)
        if (Either.isRight(read))
          expect(der(sequence(written(read.right.r), written(read.right.s)))).toBe(text)
      },
      { numRuns: 2_000 }
    )
  })
})

describe("what is wrong with a DER signature", () => {
  it.each([
    ["no sequence", der(integer("01"), integer("01")), "expected a DER sequence of two integers"],
    ["one integer", der(sequence(integer("01"))), "expected a DER sequence of two integers"],
    [
      "zero",
      der(sequence(integer("01"), integer("00"))),
      "expected r and s as positive integers of at most 32 bytes, in their shortest form"
    ]
  ])("is said: %s", (_, text, message) => {
    expect(Der.signature(text)).toEqual(Either.left(message))
  })
})

describe("a DER public key", () => {
  const spkiOf = (curve: string) =>
    generateKeyPairSync("ec", { namedCurve: curve }).publicKey.export({ format: "der", type: "spki" })

  it.prop(
    "is read as node:crypto writes it, and is the point that ethers computes",
    [scalar],
    ([key]) => {
      const ecdh = createECDH("secp256k1")
      ecdh.setPrivateKey(Buffer.from(key.slice(2), "hex"))
      const point = ecdh.getPublicKey()
      const spki = createPublicKey({
        key: {
          kty: "EC",
          crv: "secp256k1",
          x: point.subarray(1, 33).toString("base64url"),
          y: point.subarray(33).toString("base64url")
        },
        format: "jwk"
      }).export({ format: "der", type: "spki" })
      expect(Der.publicKey(bytes(spki))).toEqual(Either.right(new SigningKey(key).publicKey.slice(2)))
    },
    { fastCheck: { numRuns: 50 } }
  )

  it("of another curve or algorithm is told apart from garbage", () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 }).publicKey
    const edwards = generateKeyPairSync("ed25519").publicKey
    expect(problem(bytes(spkiOf("prime256v1")))).toBe("otherKind")
    expect(problem(bytes(spkiOf("secp384r1")))).toBe("otherKind")
    expect(problem(bytes(rsa.export({ format: "der", type: "spki" })))).toBe("otherKind")
    expect(problem(bytes(edwards.export({ format: "der", type: "spki" })))).toBe("otherKind")
    expect(problem(Hex.unsafe("0x30030201ff"))).toBe("malformed")
  })

  it("may be of any size below 64 KiB, which is said in the shortest way", () => {
    const algorithm = element("06", "2a")
    /** A key of another algorithm, this many bytes long without its own tag and length. */
    const body = (bytes: number) => {
      const bits = bytes - (sequence(algorithm) + element("03", "00".repeat(bytes - 10))).length / 2
      const padded = sequence(algorithm) + element("03", "00".repeat(bytes - 10 + bits))
      expect(padded.length / 2).toBe(bytes)
      return padded
    }
    const cases: ReadonlyArray<readonly [string, number, string]> = [
      ["7f", 127, "otherKind"],
      ["817f", 127, "malformed"],
      ["8180", 128, "otherKind"],
      ["81ff", 255, "otherKind"],
      ["8200ff", 255, "malformed"],
      ["820100", 256, "otherKind"],
      ["82ffff", 65_535, "otherKind"],
      ["8300ffff", 65_535, "malformed"],
      ["83010000", 65_536, "malformed"],
      ["80", 128, "malformed"]
    ]
    for (const [length, bytes, expected] of cases)
      expect(problem(der("30", length, body(bytes))), length).toBe(expected)
  })

  it("is malformed without its algorithm's name, and of another kind where that names no elliptic curve", () => {
    const whole = bytes(spkiOf("secp256k1"))
    const algorithm = "06072a8648ce3d020106052b8104000a"
    expect(problem(Hex.unsafe(whole.replace(algorithm, `04${algorithm.slice(2)}`)))).toBe("malformed")
    expect(problem(Hex.unsafe(whole.replace("2a8648ce3d0201", "2a8648ce3d0202")))).toBe("otherKind")
  })

  it("is malformed without the bits of its point, or with something behind them", () => {
    const algorithm = sequence("06072a8648ce3d0201", "06052b8104000a")
    const bits = element("03", "00".repeat(66))
    for (const rest of [[], [element("04", "00".repeat(66))], [bits, "0500"], [element("03", "")]])
      expect(problem(der(sequence(algorithm, ...rest))), rest.join("")).toBe("malformed")
  })

  it("of P-256 is malformed with a point that is none", () => {
    const whole = bytes(spkiOf("prime256v1"))
    expect(Either.isRight(Der.p256PublicKey(whole))).toBe(true)
    const bent = Hex.unsafe(`${whole.slice(0, -128)}${"ff".repeat(64)}`)
    expect(Der.p256PublicKey(bent)).toEqual(Either.left("malformed"))
    expect(Der.p256PublicKey(bytes(spkiOf("secp256k1")))).toEqual(Either.left("otherKind"))
  })

  it("is malformed when cut, extended or off the curve", () => {
    const whole = bytes(spkiOf("secp256k1"))
    expect(Either.isRight(Der.publicKey(whole))).toBe(true)
    for (let end = 2; end < whole.length; end += 2)
      expect(problem(Hex.unsafe(whole.slice(0, end)))).toBe("malformed")
    expect(problem(Hex.concat(whole, Hex.unsafe("0x00")))).toBe("malformed")
    const last = Number.parseInt(whole.slice(-2), 16)
    const bent = `${whole.slice(0, -2)}${(last ^ 1).toString(16).padStart(2, "0")}`
    expect(problem(Hex.unsafe(bent))).toBe("malformed")
  })

  it("is malformed with unused bits, or with a point that is not uncompressed", () => {
    const whole = bytes(spkiOf("secp256k1"))
    expect(problem(Hex.unsafe(whole.replace("034200", "034201")))).toBe("malformed")
    const algorithm = "301006072a8648ce3d020106052b8104000a"
    const x = whole.slice(-128, -64)
    expect(problem(der(sequence(algorithm, element("03", `0002${x}`))))).toBe("malformed")
    expect(problem(der(sequence(algorithm, element("03", "0000"))))).toBe("malformed")
  })
})
