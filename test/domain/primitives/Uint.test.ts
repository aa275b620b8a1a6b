import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { toBeHex, toQuantity } from "ethers"
import * as fc from "fast-check"
import * as Uint from "../../../src/domain/primitives/Uint.js"
import { forAll, uint, words } from "../generators.js"

describe("Uint", () => {
  it("Uint reads decimal and hexadecimal text", () => {
    forAll([uint(256)], (value) => {
      expect(Result.getOrNull(Uint.from(value.toString()))).toBe(value)
      expect(Result.getOrNull(Uint.from(toBeHex(value, 32)))).toBe(value)
      expect(Result.getOrNull(Uint.from(Uint.toQuantity(value)))).toBe(value)
      expect(Schema.decodeSync(Uint.schema)(Schema.encodeSync(Uint.schema)(value))).toBe(value)
    })
  })

  const none = `-1 -0 +1 01 00 1.0 1e3 1_000 0x -0x1 0xg 0x${"0".repeat(65)} ${1n << 256n} ٣ NaN Infinity`
  it.each(["", " ", " 1", "1 ", "1\n", "9".repeat(1000), ...words(none)])("Uint refuses %j", (text) => {
    const why = Result.getOrThrow(Result.flip(Uint.from(text)))
    expect(why.type).toBe("Uint")
    const decoded = Result.getOrThrow(Result.flip(Schema.decodeResult(Uint.schema)(text)))
    expect(decoded.message).toContain(why.message)
  })

  it.each([
    ["", 'got ""'],
    ["\u22125", 'got "\u22125", with the character U+2212 for "-"'],
    ["5\u00a0", 'got "5\u00a0", with the character U+00A0'],
    ["\u{1d7ce}", 'got "\u{1d7ce}", with the character U+1D7CE'],
    ["-5", 'got "-5"'],
    ["007", 'got "007"'],
    ["ten", 'got "ten"'],
    ...["1 ether", "0.5", "1e18", "1,000", "20gwei"].map((text): [string, string] => [
      text,
      `got "${text}"; amounts are whole numbers of the smallest unit, for native value wei`
    ]),
    ["secret".repeat(20), 'got "secretse" (the first 8 of 120 characters)'],
    [
      "\ud83d\ude00".repeat(100),
      /^got "(\ud83d\ude00){8}" \(the first 8 of 200 characters\), with the character U\+1F600$/u
    ]
  ])("%j is refused as an integer, with the reason", (text, what) => {
    const { message } = Result.getOrThrow(Result.flip(Uint.from(text)))
    const [expected, ...got] = message.split(", got")
    expect(expected).toBe("expected a non-negative integer as a decimal or 0x-hex string")
    expect(`got${got.join(", got")}`).toEqual(typeof what === "string" ? what : expect.stringMatching(what))
  })

  it("Uint checks for at most 78 decimal digits before the size", () => {
    for (const text of ["9".repeat(78), "9".repeat(79), `1${"0".repeat(80)}`, `0x1${"0".repeat(64)}`])
      expect(Result.flip(Uint.from(text))).toMatchObject({
        success: { message: "the integer does not fit uint256" }
      })
  })

  it("Uint may have any number of bits", () => {
    for (const bits of [0, 1, 8, 256, 257, 512]) expect(Uint.max(bits)).toBe((1n << BigInt(bits)) - 1n)
  })

  it("Uint holds integers to the bits asked for", () => {
    forAll([uint(256), fc.integer({ min: 1, max: 256 })], (value, bits) => {
      const inside = value < 1n << BigInt(bits)
      expect(Result.isSuccess(Uint.from(value.toString(), bits))).toBe(inside)
      expect(Uint.fits(value, bits)).toBe(inside)
      expect(Uint.fits(-value - 1n, bits)).toBe(false)
      expect([0n, Uint.max(bits), Uint.max(bits) + 1n].map((each) => Uint.fits(each, bits))).toEqual([
        true,
        true,
        false
      ])
    })
  })

  it("writes quantities and words", () => {
    forAll([uint(256)], (value) => {
      expect(Uint.toQuantity(value)).toBe(toQuantity(value))
      expect(Uint.toWord(value)).toBe(toBeHex(value, 32).slice(2))
      expect(Uint.toWord(value + (1n << 256n))).toBe(Uint.toWord(value))
    })
  })

  it("Uint distinguishes a uint48 from other numbers", () => {
    for (const value of [0, -0, 1, 2 ** 32, 2 ** 48 - 1]) expect(Uint.isUint48(value)).toBe(true)
    for (const value of [-1, 0.5, 2 ** 48, Number.NaN, Number.POSITIVE_INFINITY, Number.MAX_VALUE])
      expect(Uint.isUint48(value)).toBe(false)
  })
})
