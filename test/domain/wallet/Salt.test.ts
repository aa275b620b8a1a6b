import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { id } from "ethers"
import * as fc from "fast-check"
import * as Salt from "../../../src/domain/wallet/Salt.js"

const accepted = (text: string) => Either.isRight(Salt.from(text))

describe("Salt", () => {
  it.each([
    ["one letter", "a"],
    ["inner spaces", "Anna  and\u00a0Otto"],
    ["256 letters", "x".repeat(256)],
    ["256 bytes of two-byte letters", "ß".repeat(128)],
    ["256 bytes of emoji", "\u{1f600}".repeat(64)],
    ["a composed letter", "caf\u00e9"],
    ["composed Hangul", "\ud55c\uae00"],
    ["an emoji of joined ones", "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}"],
    ["direction marks inside", "a\u202eb\u200fc\u2066d"],
    ["zero-width characters", "a\u200bb\u200cc\ufeffd"],
    ["a variation selector", "\u2764\ufe0f"],
    ["a private-use character", "\ue000"],
    ["a noncharacter", "a\uffff"],
    ["a combining mark without composed form", "x\u0301"],
    ["a tag-like text", "<script>alert(1)</script>"],
    ["a path", "../../etc/passwd"],
    ["hex", `0x${"00".repeat(32)}`],
    ["the name of a property", "__proto__"],
    ["a replacement character", "\ufffd"]
  ])("may be %s", (_, text) => {
    expect(Salt.from(text)).toEqual(Either.right(text))
  })

  it.each([
    ["empty", ""],
    ["a space", " "],
    ["led by a space", " a"],
    ["trailed by a space", "a "],
    ["trailed by a line feed", "a\n"],
    ["led by a no-break space", "\u00a0a"],
    ["trailed by an ideographic space", "a\u3000"],
    ["led by a line separator", "\u2028a"],
    ["led by a byte order mark", "\ufeffa"],
    ["with NUL", "a\u0000b"],
    ["with a tab", "a\tb"],
    ["with a line feed", "a\nb"],
    ["with DEL", "a\u007fb"],
    ["with a C1 control", "a\u0085b"],
    ["with ESC", "\u001b[31ma"],
    ["decomposed", "cafe\u0301"],
    ["decomposed Hangul", "\u1112\u1161\u11ab"],
    ["a compatibility singleton", "\u212b"],
    ["marks in another order", "a\u0315\u0300"],
    ["a high surrogate alone", "\ud83d"],
    ["a low surrogate alone", "\ude00"],
    ["surrogates the wrong way round", "\ude00\ud83d"],
    ["a surrogate in the middle", "a\ud83db"],
    ["257 letters", "x".repeat(257)],
    ["258 bytes of two-byte letters", "ß".repeat(129)],
    ["260 bytes of emoji", "\u{1f600}".repeat(65)],
    ["a megabyte", "x".repeat(1 << 20)]
  ])("may not be %s", (_, text) => {
    expect(Either.flip(Salt.from(text)).pipe(Either.getOrThrow)).toMatchObject({
      _tag: "InvalidValue",
      type: "Salt",
      message: "invalid salt format"
    })
    expect(Either.isLeft(Schema.decodeEither(Salt.schema)(text))).toBe(true)
  })

  it("that is accepted has 1 to 256 UTF-8 bytes, is in NFC and survives UTF-8", () => {
    const text = fc.oneof(
      fc.fullUnicodeString({ maxLength: 130 }),
      fc.string16bits({ maxLength: 130 }),
      fc.stringOf(
        fc.constantFrom("a", "e", "\u0301", "\u00e9", " ", "\u0000", "\ud83d", "\ude00", "\u{1f600}")
      )
    )
    fc.assert(
      fc.property(text, (given) => {
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
      }),
      { numRuns: 1000 }
    )
  })

  it("never looks like another one by normalisation", () => {
    fc.assert(
      fc.property(fc.fullUnicodeString(), (text) => {
        const forms = new Set(["NFC", "NFD"].map((form) => text.normalize(form)).filter(accepted))
        expect(forms.size).toBeLessThanOrEqual(1)
      })
    )
  })

  it("is case-sensitive", () => {
    const [lower, upper] = ["salt", "Salt"].map((text) => Either.getOrThrow(Salt.from(text)))
    expect(lower && Salt.hash(lower)).not.toBe(upper && Salt.hash(upper))
  })

  it("is hashed as keccak256 of its UTF-8 bytes", () => {
    fc.assert(
      fc.property(fc.fullUnicodeString({ minLength: 1, maxLength: 60 }), (text) => {
        const salt = Salt.from(text)
        fc.pre(Either.isRight(salt))
        if (Either.isRight(salt)) expect(Salt.hash(salt.right)).toBe(id(text))
      })
    )
  })
})

describe("the length of a salt", () => {
  it.each([
    ["\u00a1", 2],
    ["\u07fe", 2],
    ["\u0905", 3],
    ["\u{10000}", 4],
    ["\u{1f600}", 4]
  ])("counts the bytes of %j in UTF-8", (character, bytes) => {
    const rest = "x".repeat(256 - bytes)
    expect(Either.isRight(Salt.from(`${character}${rest}`))).toBe(true)
    expect(Either.isLeft(Salt.from(`${character}${rest}x`))).toBe(true)
  })
})
