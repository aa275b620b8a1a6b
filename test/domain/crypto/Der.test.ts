import { createECDH, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { SigningKey } from "ethers"
import * as fc from "fast-check"
import * as Der from "../../../src/domain/crypto/Der.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { bytes32, forAll, hex } from "../generators.js"

const der = (...parts: ReadonlyArray<string>) => Hex.unsafe(`0x${parts.join("")}`)
const size = (digits: string) => {
  const length = digits.length / 2
  const [prefix, bytes] = length < 128 ? ["", 1] : length < 256 ? ["81", 1] : ["82", 2]
  return prefix + length.toString(16).padStart(2 * bytes, "0")
}
const element = (tag: string, body: string) => `${tag}${size(body)}${body}`
const integer = (body: string) => element("02", body)
const sequence = (...parts: ReadonlyArray<string>) => element("30", parts.join(""))
/** The only integer of this value. */
const written = (value: bigint) => {
  const digits = value.toString(16)
  const even = digits.padStart(digits.length + (digits.length % 2), "0")
  return integer(/^[89a-f]/.test(even) ? `00${even}` : even)
}
const refused = (text: Hex.Hex) => expect(Result.isFailure(Der.signature(text)), text).toBe(true)
const scalar = bytes32.filter((key) => BigInt(key) > 0n && BigInt(key) < 2n ** 255n)

describe("a DER signature", () => {
  it("a DER signature is read as node:crypto writes it", () => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "secp256k1" })
    forAll([hex()], (text) => {
      const message = Buffer.from(text.slice(2), "hex")
      const { r, s } = Result.getOrThrow(Der.signature(Hex.fromBytes(sign("sha256", message, privateKey))))
      const compact = Buffer.from([r, s].map((each) => each.toString(16).padStart(64, "0")).join(""), "hex")
      expect(verify("sha256", message, { key: publicKey, dsaEncoding: "ieee-p1363" }, compact)).toBe(true)
    })
  })

  it("a DER signature holds the r and s that ethers wrote", () => {
    forAll(
      [scalar, bytes32],
      (key, digest) => {
        const [r, s] = (({ r, s }) => [BigInt(r), BigInt(s)])(new SigningKey(key).sign(digest)) as [
          bigint,
          bigint
        ]
        expect(Der.signature(der(sequence(written(r), written(s))))).toEqual(Result.succeed({ r, s }))
      },
      { numRuns: 50 }
    )
  })

  it("a DER signature has r and s of 1 to 32 bytes, with a zero byte only for the sign", () => {
    for (const [r, s] of [
      [1n, 127n],
      [128n, 2n ** 256n - 1n]
    ] as const)
      expect(Der.signature(der(sequence(written(r), written(s))))).toEqual(Result.succeed({ r, s }))
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

  const [r, s] = [integer("11"), integer("22")]
  it.each([
    ["something behind it", `${sequence(r, s)}00`],
    ["a third integer", sequence(r, s, integer("33"))],
    ["null in it", sequence(r, s, "0500")],
    ["one integer", sequence(r)],
    ["another tag", element("31", r + s)],
    ["bytes in place of r", sequence(element("04", "11"), s)],
    ["nothing", ""],
    ["a length in two bytes", `308106${r}${s}`],
    ["a length in three bytes", `30820006${r}${s}`],
    ["no length", `3080${r}${s}0000`],
    ["a length in four bytes", `3083000006${r}${s}`],
    ["a longer length of r", `300702810111${s}`],
    ["a length that is reserved", `30ff${r}${s}`]
  ])("a DER signature is refused with %s", (_, text) => refused(der(text)))

  it("a DER signature has one form, is refused when cut anywhere, and never crashes the reader", () => {
    const whole = sequence(integer(`00${"ff".repeat(32)}`), integer("7f".repeat(32)))
    for (let end = 0; end < whole.length; end += 2) refused(der(whole.slice(0, end)))
    forAll([hex()], (garbage) => {
      expect(Result.isResult(Der.signature(garbage))).toBe(true)
      expect(Result.isFailure(Der.publicKey(garbage))).toBe(true)
    })
    const nearly = fc.tuple(hex(34), hex(34)).map((pair) => pair.map((each) => integer(each.slice(2))))
    forAll(
      [nearly],
      (parts) => {
        const read = Der.signature(der(sequence(...parts)))
        if (Result.isSuccess(read)) expect([written(read.success.r), written(read.success.s)]).toEqual(parts)
      },
      { numRuns: 2_000 }
    )
  })

  it.each([
    [der(integer("01"), integer("01")), "expected a DER sequence of two integers"],
    [der(sequence(integer("01"))), "expected a DER sequence of two integers"],
    [
      der(sequence(integer("01"), integer("00"))),
      "expected r and s as positive integers of at most 32 bytes, in their shortest form"
    ]
  ])("a malformed DER signature fails with its reason: %s", (text, message) => {
    expect(Der.signature(text)).toEqual(Result.fail(message))
  })
})

describe("a DER public key", () => {
  const spki = (key: KeyObject) => Hex.fromBytes(key.export({ format: "der", type: "spki" }))
  const ofCurve = (namedCurve: string) => spki(generateKeyPairSync("ec", { namedCurve }).publicKey)
  const whole = ofCurve("secp256k1")
  const problem = (text: string) => Result.getOrNull(Result.flip(Der.publicKey(Hex.unsafe(text))))

  it("a DER public key is read as node:crypto writes it, and is the point that ethers computes", () => {
    forAll(
      [scalar],
      (key) => {
        const ecdh = createECDH("secp256k1")
        ecdh.setPrivateKey(Buffer.from(key.slice(2), "hex"))
        const point = ecdh.getPublicKey()
        const [x, y] = [point.toString("base64url", 1, 33), point.toString("base64url", 33)]
        const made = createPublicKey({ key: { kty: "EC", crv: "secp256k1", x, y }, format: "jwk" })
        expect(Der.publicKey(spki(made))).toEqual(Result.succeed(new SigningKey(key).publicKey.slice(2)))
      },
      { numRuns: 50 }
    )
  })

  it("a DER key of another curve or algorithm differs from garbage", () => {
    const others = [
      ofCurve("prime256v1"),
      ofCurve("secp384r1"),
      spki(generateKeyPairSync("rsa", { modulusLength: 2_048 }).publicKey),
      spki(generateKeyPairSync("ed25519").publicKey),
      whole.replace("2a8648ce3d0201", "2a8648ce3d0202")
    ]
    for (const other of others) expect(problem(other)).toBe("otherKind")
  })

  it("a DER public key may have any size below 64 KiB, in its shortest form", () => {
    const algorithm = sequence(element("06", "2a"))
    /** A key of another algorithm, this many bytes long without its own tag and length. */
    const body = (bytes: number) => {
      const bits = bytes - (algorithm + element("03", "00".repeat(bytes - 10))).length / 2
      return algorithm + element("03", "00".repeat(bytes - 10 + bits))
    }
    for (const [length, bytes, expected] of [
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
    ] as const) {
      expect(body(bytes).length).toBe(2 * bytes)
      expect(problem(der("30", length, body(bytes))), length).toBe(expected)
    }
  })

  it("a DER public key is malformed when a part is missing, added or changed", () => {
    expect(Result.isSuccess(Der.publicKey(whole))).toBe(true)
    const name = "06072a8648ce3d020106052b8104000a"
    const algorithm = sequence(name)
    const last = (Number.parseInt(whole.slice(-2), 16) ^ 1).toString(16).padStart(2, "0")
    const bits = element("03", "00".repeat(66))
    const bad = [
      "0x30030201ff",
      whole.replace(name, `04${name.slice(2)}`),
      whole.replace("034200", "034201"),
      `${whole}00`,
      `${whole.slice(0, -2)}${last}`,
      ...[`0002${whole.slice(-128, -64)}`, "0000", ""].map((point) =>
        der(sequence(algorithm, element("03", point)))
      ),
      der(sequence(algorithm)),
      der(sequence(algorithm, element("04", "00".repeat(66)))),
      der(sequence(algorithm, bits, "0500"))
    ]
    for (const text of bad) expect(problem(text), text).toBe("malformed")
    for (let end = 2; end < whole.length; end += 2) expect(problem(whole.slice(0, end))).toBe("malformed")
  })

  it("a DER key of P-256 with an invalid point is malformed", () => {
    const p256 = ofCurve("prime256v1")
    expect(Result.isSuccess(Der.p256PublicKey(p256))).toBe(true)
    const bent = Hex.unsafe(`${p256.slice(0, -128)}${"ff".repeat(64)}`)
    expect(Der.p256PublicKey(bent)).toEqual(Result.fail("malformed"))
    expect(Der.p256PublicKey(whole)).toEqual(Result.fail("otherKind"))
  })
})
