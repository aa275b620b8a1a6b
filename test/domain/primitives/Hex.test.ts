import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { bytes32, forAll, hex } from "../generators.js"

describe("Hex", () => {
  it("Hex takes 0x and an even number of digits of either case, and lowers them", () => {
    expect(Result.getOrNull(Hex.from("0x"))).toBe("0x")
    expect(Result.getOrNull(Hex.from("0xAbCd"))).toBe("0xabcd")
  })

  it.each(["", "0", "abcd", "0X12", "0xabc", "0xzz", " 0x12", "0x12 ", "0x12\n", "\n0x12", "0x 12", "0x1२"])(
    "Hex refuses %j",
    (text) => {
      const message = "expected 0x and an even number of hex digits"
      expect(Result.getFailure(Hex.from(text))).toMatchObject({ value: { type: "Hex", message } })
      const decoded = Result.getOrThrow(Result.flip(Schema.decodeResult(Hex.schema)(text)))
      expect(decoded.message).toContain(message)
    }
  )

  it("Hex takes exactly 32 bytes for a 32-byte type", () => {
    const word = `0x${"Ab".repeat(32)}`
    expect(Result.getOrNull(Hex.from32(word))).toBe(word.toLowerCase())
    for (const text of [word.slice(0, -2), `${word}00`, word.slice(2), `${word.slice(0, -1)}g`, "0x"]) {
      const message = "expected 32 bytes: 0x and 64 hex digits"
      expect(Result.getFailure(Hex.from32(text))).toMatchObject({ value: { type: "Bytes32", message } })
      const decoded = Result.getOrThrow(Result.flip(Schema.decodeResult(Hex.schema32)(text)))
      expect(decoded.message).toContain(message)
    }
  })

  it("Hex refuses to encode malformed values", () => {
    for (const text of ["0xabc", "0xAB", "ab", "0x0"])
      expect(Result.isFailure(Schema.encodeResult(Hex.schema)(text as Hex.Hex)), text).toBe(true)
    expect(Schema.encodeResult(Hex.schema)(Hex.unsafe("0xAB"))).toEqual(Result.succeed("0xab"))
  })

  it("Hex counts and joins bytes", () => {
    forAll([fc.array(hex(40))], (parts) => {
      const joined = Hex.concat(...parts)
      expect(Hex.size(joined)).toBe(parts.reduce((sum, part) => sum + Hex.size(part), 0))
      expect(joined).toBe(
        `0x${Buffer.concat(parts.map((p) => Buffer.from(p.slice(2), "hex"))).toString("hex")}`
      )
    })
  })

  it("Hex is written and read as in Node, of lengths around the short-string limit", () => {
    for (const length of [0, 1, 2, 255, 256, 1_023, 1_024, 1_025, 5_000]) {
      const bytes = Uint8Array.from({ length }, (_, at) => (at * 7 + length) % 256)
      const text = Hex.fromBytes(bytes)
      expect(text).toBe(`0x${Buffer.from(bytes).toString("hex")}`)
      expect(Hex.toBytes(text)).toEqual(bytes)
      expect(Hex.fromBytes(new Uint8Array(length))).toBe(`0x${"00".repeat(length)}`)
    }
  })

  it("Hex is sliced between two offsets, or from one to the end", () => {
    forAll([hex(80), fc.nat(90), fc.nat(90)], (bytes, from, to) => {
      const buffer = Buffer.from(bytes.slice(2), "hex")
      expect(Hex.slice(bytes, from)).toBe(`0x${buffer.subarray(from).toString("hex")}`)
      expect(Hex.slice(bytes, from, to)).toBe(`0x${buffer.subarray(from, to).toString("hex")}`)
    })
  })

  it("Hex goes over the wire and back unchanged", () => {
    forAll([hex(), bytes32], (bytes, word) => {
      expect(Schema.decodeSync(Hex.schema)(Schema.encodeSync(Hex.schema)(bytes))).toBe(bytes)
      expect(Schema.decodeSync(Hex.schema32)(Schema.encodeSync(Hex.schema32)(word))).toBe(word)
    })
  })
})
