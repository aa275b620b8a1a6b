import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Base64 from "../../../src/domain/primitives/Base64.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { spellings } from "../../support/passkeys/Encodings.js"
import * as Work from "../../support/Work.js"
import { forAll, hex } from "../generators.js"

const isRefused = (text: string) => Result.isFailure(Base64.decode(text))

describe("Base64", () => {
  it("Base64 is read in both alphabets, padded or not, as Node writes it", () => {
    forAll([fc.uint8Array({ maxLength: 200 })], (bytes) => {
      for (const text of spellings(bytes)) expect(Base64.decode(text)).toEqual(Result.succeed(bytes))
    })
  })

  it("Base64 is written as WebAuthn writes challenges", () => {
    forAll([hex()], (bytes) => {
      const text = Base64.encodeUrl(bytes)
      expect(text).toBe(Buffer.from(bytes.slice(2), "hex").toString("base64url"))
      expect(Base64.decodeHex(text)).toEqual(Result.succeed(bytes))
    })
  })

  // White space, both alphabets, digits and padding too many, too few or inside, unused bits, other characters.
  it.each([
    "AQID BA==",
    "AQID\n",
    "+_+_",
    "AQIDB",
    "AQIDBA=",
    "AQID=",
    "==",
    "AQ==AQ==",
    "A===",
    "AQJ",
    "AQ!D",
    "АQID",
    "AQI\0"
  ])("Base64 is refused: %j", (text) => {
    expect(isRefused(text)).toBe(true)
  })

  it("Base64 has no two spellings of the same bytes in one alphabet without padding", () => {
    forAll([fc.string({ unit: fc.constantFrom(..."ABab01-_"), maxLength: 12 })], (text) => {
      const read = Base64.decodeHex(text)
      if (Result.isSuccess(read)) expect(Base64.encodeUrl(read.success)).toBe(text)
    })
  })

  it("Base64 decodes any text to bytes or refuses it, a long one with little work", () => {
    forAll([fc.string()], (text) => Result.isResult(Base64.decode(text)))
    const work = Work.of(() => {
      for (const long of ["A".repeat(1_000_001), `${"A".repeat(1_000_000)}-+`, "=".repeat(1_000_000)])
        expect(isRefused(long)).toBe(true)
    })
    expect(work).toBeLessThan(2_000)
    expect(Hex.size(Result.getOrThrow(Base64.decodeHex("A".repeat(1_000_000))))).toBe(750_000)
  })
})
