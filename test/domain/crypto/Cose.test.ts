import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as Cose from "../../../src/domain/crypto/Cose.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { newPasskey } from "../../support/suite/Keys.js"
import { forAll, hex } from "../generators.js"

const { x, y } = newPasskey().publicKey
const key = { x: Hex.unsafe32(x), y: Hex.unsafe32(y) }

const digitsOf = (value: number, bytes: number) => value.toString(16).padStart(2 * bytes, "0")

/** The initial byte and the argument in the shortest form (RFC 8949, section 3). */
const head = (major: number, argument: number): string => {
  const initial = (info: number) => digitsOf((major << 5) | info, 1)
  if (argument < 24) return initial(argument)
  const [info, bytes] = argument < 0x100 ? [24, 1] : argument < 0x1_0000 ? [25, 2] : [26, 4]
  return initial(info) + digitsOf(argument, bytes)
}
const integer = (value: number) => (value < 0 ? head(1, -1 - value) : head(0, value))
const bytes = (digits: string) => head(2, digits.length / 2) + digits
const map = (...members: ReadonlyArray<string>) =>
  Hex.unsafe(`0x${head(5, members.length)}${members.join("")}`)

const [kty, alg, crv] = [integer(1) + integer(2), integer(3) + integer(-7), integer(-1) + integer(1)]
const [xMember, yMember] = [integer(-2) + bytes(x.slice(2)), integer(-3) + bytes(y.slice(2))]
const members = [kty, alg, crv, xMember, yMember]
const read = (...more: ReadonlyArray<string>) => Cose.p256PublicKey(map(...members, ...more))

describe("a COSE key of P-256", () => {
  it("is read with its members in any order, whatever others there are", () => {
    const others = [
      integer(4) + bytes(""),
      integer(-70_000) + integer(-24),
      integer(1_000_000) + bytes("ab".repeat(300)),
      `${integer(255)}f4`,
      `${integer(256)}f5`,
      integer(65_535) + bytes("cd".repeat(23)),
      integer(65_536) + bytes("cd".repeat(24)),
      integer(-25) + integer(2 ** 32 - 1)
    ]
    forAll(
      [
        fc.shuffledSubarray([...members, ...others], {
          minLength: members.length + others.length
        })
      ],
      (shuffled) => {
        expect(Cose.p256PublicKey(map(...shuffled))).toEqual(Either.right(key))
      }
    )
  })

  it("may say y by its sign, and leave its algorithm out", () => {
    const odd = BigInt(y) % 2n === 1n
    const of = (sign: string) => Cose.p256PublicKey(map(kty, crv, xMember, integer(-3) + sign))
    expect(of(odd ? "f5" : "f4")).toEqual(Either.right(key))
    expect(Either.map(of(odd ? "f4" : "f5"), (found) => found.x)).toEqual(Either.right(key.x))
    expect(of(odd ? "f4" : "f5")).not.toEqual(Either.right(key))
  })

  it("of another type, curve or algorithm is told apart from what is none", () => {
    for (const other of [
      [integer(1) + integer(3), alg, crv, xMember, yMember],
      [kty, integer(3) + integer(-8), crv, xMember, yMember],
      [kty, alg, integer(-1) + integer(2), xMember, yMember],
      [alg, crv, xMember, yMember]
    ])
      expect(Cose.p256PublicKey(map(...other))).toEqual(Either.left("otherKind"))
    for (const none of [
      [kty, alg, crv, yMember],
      [kty, alg, crv, xMember],
      [kty, alg, crv, integer(-2) + integer(1), yMember],
      [kty, alg, crv, `${integer(-2)}f5`, yMember],
      [kty, alg, crv, xMember, integer(-3) + integer(0)],
      [kty, alg, crv, integer(-2) + bytes("00".repeat(32)), yMember],
      [kty, alg, crv, integer(-2) + bytes(x.slice(2, 64)), integer(-3) + bytes(x.slice(64) + y.slice(2))],
      [kty, alg, crv, integer(-2) + bytes(x.slice(2) + y.slice(2, 4)), integer(-3) + bytes(y.slice(4))]
    ])
      expect(Cose.p256PublicKey(map(...none))).toEqual(Either.left("malformed"))
  })

  it("has at most sixteen members, none twice", () => {
    const others = (count: number) =>
      Array.from({ length: count }, (_, at) => integer(100 + at) + integer(at))
    expect(read(...others(11))).toEqual(Either.right(key))
    expect(read(...others(12))).toEqual(Either.left("malformed"))
    expect(read(integer(100) + integer(1), integer(100) + integer(1))).toEqual(Either.left("malformed"))
    expect(read(kty)).toEqual(Either.left("malformed"))
  })

  it("says every number and length in the shortest way", () => {
    const long: ReadonlyArray<readonly [string, boolean]> = [
      ["17", true],
      ["1817", false],
      ["1818", true],
      ["18ff", true],
      ["1900ff", false],
      ["190100", true],
      ["19ffff", true],
      ["1a0000ffff", false],
      ["1a00010000", true],
      ["1affffffff", true],
      ["1b0000000100000000", false],
      ["1c", false],
      ["1f", false]
    ]
    for (const [text, taken] of long) expect(Either.isRight(read(integer(200) + text)), text).toBe(taken)
  })

  it("has labels that are integers, and members that are integers, bytes or booleans", () => {
    for (const bad of [
      `${bytes("01")}${integer(1)}`,
      `f5${integer(1)}`,
      `${integer(200)}61${"61"}`,
      `${integer(200)}80`,
      `${integer(200)}f6`,
      `${integer(200)}f93c00`,
      `${integer(200)}5f41ff${"ff"}`
    ])
      expect(read(bad), bad).toEqual(Either.left("malformed"))
  })

  it("is one map, whole and with nothing behind it", () => {
    const whole = map(...members, integer(200) + integer(70_000))
    expect(Cose.p256PublicKey(whole)).toEqual(Either.right(key))
    for (let end = 2; end < whole.length; end += 2)
      expect(Cose.p256PublicKey(Hex.unsafe(whole.slice(0, end)))).toEqual(Either.left("malformed"))
    for (const last of [bytes("ab".repeat(30)), integer(2 ** 32 - 1), integer(2 ** 16 - 1)]) {
      const cut = map(...members, integer(200) + last)
      for (let end = 2; end < cut.length; end += 2)
        expect(Cose.p256PublicKey(Hex.unsafe(cut.slice(0, end)))).toEqual(Either.left("malformed"))
    }
    expect(Cose.p256PublicKey(Hex.concat(whole, Hex.unsafe("0x00")))).toEqual(Either.left("malformed"))
    const array = Hex.unsafe(whole.replace("0xa6", "0x86"))
    expect(Cose.p256PublicKey(array)).toEqual(Either.left("malformed"))
    forAll([hex(200)], (garbage) => Either.isLeft(Cose.p256PublicKey(garbage)))
  })
})
