import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { id } from "ethers"
import * as fc from "fast-check"
import * as Salt from "../../../src/domain/wallet/Salt.js"
import { forAll } from "../generators.js"

const accepted = (text: string) => Result.isSuccess(Salt.from(text))

describe("Salt", () => {
  it.each([
    ["inner spaces", "Anna  and\u00a0Otto"],
    ["256 bytes of two-byte letters", "ß".repeat(128)],
    ["256 bytes of emoji", "\u{1f600}".repeat(64)],
    ["a composed letter", "caf\u00e9"],
    ["an emoji of joined ones", "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}"],
    ["direction marks and zero-width characters inside", "a\u202eb\u200fc\u2066d\u200be\ufefff"],
    ["a private-use character and a noncharacter", "\ue000\uffff"],
    ["a combining mark without composed form", "x\u0301"],
    ["hex", `0x${"00".repeat(32)}`],
    ["the name of a property", "__proto__"]
  ])("a salt may be %s", (_, text) => {
    expect(Salt.from(text)).toEqual(Result.succeed(text))
  })

  it.each([
    ["empty", ""],
    ["a space", " "],
    ["trailed by a line feed", "a\n"],
    ["led by a no-break space", "\u00a0a"],
    ["led by a byte order mark", "\ufeffa"],
    ["with NUL", "a\u0000b"],
    ["with DEL", "a\u007fb"],
    ["with a C1 control", "a\u0085b"],
    ["decomposed", "cafe\u0301"],
    ["decomposed Hangul", "\u1112\u1161\u11ab"],
    ["a compatibility singleton", "\u212b"],
    ["marks in another order", "a\u0315\u0300"],
    ["a lone high surrogate", "\ud83d"],
    ["surrogates the wrong way round", "\ude00\ud83d"],
    ["258 bytes of two-byte letters", "ß".repeat(129)],
    ["260 bytes of emoji", "\u{1f600}".repeat(65)],
    ["a megabyte", "x".repeat(1 << 20)]
  ])("a salt may not be %s", (_, text) => {
    expect(Result.flip(Salt.from(text)).pipe(Result.getOrThrow)).toMatchObject({
      _tag: "InvalidValue",
      type: "Salt",
      message: "invalid salt format"
    })
    expect(Result.isFailure(Schema.decodeResult(Salt.schema)(text))).toBe(true)
  })

  it("an accepted salt has 1 to 256 UTF-8 bytes, is in NFC and survives UTF-8", () => {
    const text = fc.oneof(
      fc.fullUnicodeString({ maxLength: 130 }),
      fc.string16bits({ maxLength: 130 }),
      fc.stringOf(
        fc.constantFrom("a", "e", "\u0301", "\u00e9", " ", "\u0000", "\ud83d", "\ude00", "\u{1f600}")
      )
    )
    forAll(
      [text],
      (given) => {
        const bytes = Buffer.from(given, "utf8")
        const wellFormed = bytes.toString("utf8") === given
        const expected =
          wellFormed &&
          bytes.length >= 1 &&
          bytes.length <= 256 &&
          given === given.normalize("NFC") &&
          given === given.trim() &&
          [...given].every((character) => {
            const code = character.codePointAt(0) ?? 0
            return code >= 0x20 && !(code >= 0x7f && code <= 0x9f)
          })
        expect(accepted(given)).toBe(expected)
      },
      { numRuns: 1000 }
    )
  })

  it("a salt never equals another salt by normalisation", () => {
    forAll([fc.fullUnicodeString()], (text) => {
      const forms = new Set(["NFC", "NFD"].map((form) => text.normalize(form)).filter(accepted))
      expect(forms.size).toBeLessThanOrEqual(1)
    })
  })

  it("a salt is hashed as keccak256 of its UTF-8 bytes", () => {
    forAll([fc.fullUnicodeString({ minLength: 1, maxLength: 60 })], (text) => {
      const salt = Salt.from(text)
      fc.pre(Result.isSuccess(salt))
      if (Result.isSuccess(salt)) expect(Salt.hash(salt.success)).toBe(id(text))
    })
  })
})

describe("the length of a salt", () => {
  it.each([
    ["\u00a1", 2],
    ["\u07fe", 2],
    ["\u0905", 3],
    ["\u{10000}", 4],
    ["\u{1f600}", 4]
  ])("the length of a salt counts the bytes of %j in UTF-8", (character, bytes) => {
    const rest = "x".repeat(256 - bytes)
    expect(Result.isSuccess(Salt.from(`${character}${rest}`))).toBe(true)
    expect(Result.isFailure(Salt.from(`${character}${rest}x`))).toBe(true)
  })
})
