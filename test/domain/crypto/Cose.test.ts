import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
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
  it("a COSE key of P-256 is read with its members in any order, and with further ones", () => {
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
        expect(Cose.p256PublicKey(map(...shuffled))).toEqual(Result.succeed(key))
      }
    )
  })

  it("a COSE key of P-256 may give y as its sign, and omit its algorithm", () => {
    const odd = BigInt(y) % 2n === 1n
    const of = (sign: string) => Cose.p256PublicKey(map(kty, crv, xMember, integer(-3) + sign))
    expect(of(odd ? "f5" : "f4")).toEqual(Result.succeed(key))
    expect(Result.map(of(odd ? "f4" : "f5"), (found) => found.x)).toEqual(Result.succeed(key.x))
    expect(of(odd ? "f4" : "f5")).not.toEqual(Result.succeed(key))
  })

  it("a COSE key of another type, curve or algorithm differs from a malformed one", () => {
    const of = (...of: ReadonlyArray<string>) => Cose.p256PublicKey(map(...of))
    for (const other of [
      [integer(1) + integer(3), alg, crv, xMember, yMember],
      [kty, integer(3) + integer(-8), crv, xMember, yMember],
      [kty, alg, integer(-1) + integer(2), xMember, yMember],
      [alg, crv, xMember, yMember]
    ])
      expect(of(...other)).toEqual(Result.fail("otherKind"))
    const [xs, ys] = [x.slice(2), y.slice(2)]
    for (const [badX, badY] of [
      ["", yMember],
      [xMember, ""],
      [integer(-2) + integer(1), yMember],
      [`${integer(-2)}f5`, yMember],
      [xMember, integer(-3) + integer(0)],
      [integer(-2) + bytes("00".repeat(32)), yMember],
      [integer(-2) + bytes(xs.slice(0, 62)), integer(-3) + bytes(xs.slice(62) + ys)],
      [integer(-2) + bytes(xs + ys.slice(0, 2)), integer(-3) + bytes(ys.slice(2))]
    ] as const)
      expect(of(kty, alg, crv, ...[badX, badY].filter((each) => each !== ""))).toEqual(
        Result.fail("malformed")
      )
  })

  it("a COSE key of P-256 has at most sixteen members, none twice", () => {
    const others = (count: number) =>
      Array.from({ length: count }, (_, at) => integer(100 + at) + integer(at))
    expect(read(...others(11))).toEqual(Result.succeed(key))
    expect(read(...others(12))).toEqual(Result.fail("malformed"))
    expect(read(integer(100) + integer(1), integer(100) + integer(1))).toEqual(Result.fail("malformed"))
    expect(read(kty)).toEqual(Result.fail("malformed"))
  })

  it("a COSE key of P-256 has every number and length in its shortest form", () => {
    for (const text of ["17", "1818", "18ff", "190100", "19ffff", "1a00010000", "1affffffff"])
      expect(Result.isSuccess(read(integer(200) + text)), text).toBe(true)
    for (const text of ["1817", "1900ff", "1a0000ffff", "1b0000000100000000", "1c", "1f"])
      expect(Result.isFailure(read(integer(200) + text)), text).toBe(true)
  })

  it("a COSE key has integer labels, and integers, bytes or booleans as members", () => {
    const members = ["6161", "80", "f6", "f93c00", "5f41ffff"].map((value) => integer(200) + value)
    for (const bad of [`${bytes("01")}${integer(1)}`, `f5${integer(1)}`, ...members])
      expect(read(bad), bad).toEqual(Result.fail("malformed"))
  })

  it("a COSE key of P-256 is one whole map, without trailing bytes", () => {
    const whole = map(...members, integer(200) + integer(70_000))
    expect(Cose.p256PublicKey(whole)).toEqual(Result.succeed(key))
    for (const last of [
      integer(70_000),
      bytes("ab".repeat(30)),
      integer(2 ** 32 - 1),
      integer(2 ** 16 - 1)
    ]) {
      const cut = map(...members, integer(200) + last)
      for (let end = 2; end < cut.length; end += 2)
        expect(Cose.p256PublicKey(Hex.unsafe(cut.slice(0, end)))).toEqual(Result.fail("malformed"))
    }
    expect(Cose.p256PublicKey(Hex.concat(whole, Hex.unsafe("0x00")))).toEqual(Result.fail("malformed"))
    const array = Hex.unsafe(whole.replace("0xa6", "0x86"))
    expect(Cose.p256PublicKey(array)).toEqual(Result.fail("malformed"))
    forAll([hex(200)], (garbage) => Result.isFailure(Cose.p256PublicKey(garbage)))
  })
})
