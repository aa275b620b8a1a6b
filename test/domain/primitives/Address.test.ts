import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { getAddress, getIcapAddress } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import { address, forAll } from "../generators.js"

/** The examples of EIP-55. */
const checksummed = [
  "0x52908400098527886E0F7030069857D2E4169EE7",
  "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
  "0xde709f2102306220921060314715629080e2fb77",
  "0x27b1fdb04752bbc536007a920d24acb045561c26",
  "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
  "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
  "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
  "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"
]

describe("Address", () => {
  it("an address stays the same after thousands of others, and a wrong checksum stays wrong", () => {
    const lower = Array.from({ length: 9_000 }, (_, n) => `0x${(n + 1).toString(16).padStart(40, "abcdef")}`)
    for (const round of [0, 1])
      for (const text of [...lower, ...lower.slice(0, 50)]) {
        const expected = getAddress(text)
        const wrong = `0x${[...expected.slice(2)].map((c) => (c < "a" ? c.toLowerCase() : c.toUpperCase())).join("")}`
        const given = round === 0 ? text : `0x${text.slice(2).toUpperCase()}`
        expect(Result.getOrThrow(Address.from(given))).toBe(expected)
        expect(Address.unsafe(given)).toBe(expected)
        expect(Result.getOrThrow(Address.from(expected))).toBe(expected)
        expect(Result.isFailure(Address.from(wrong))).toBe(wrong.toLowerCase() !== wrong)
      }
  })

  it("an address keeps its checksum after longer bytes that begin with it", () => {
    forAll(
      [address, fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 1 })],
      (own, more) => {
        const text = own.toLowerCase().replace("0x", "0x5e")
        const begun = text.slice(0, 42)
        Address.unsafe(`${begun}${more}`)
        expect(Address.unsafe(begun)).toBe(getAddress(begun))
      }
    )
  })

  it.each(checksummed)("an address gets the EIP-55 checksum of %s", (text) => {
    expect(Result.getOrNull(Address.from(text))).toBe(text)
    expect(Result.getOrNull(Address.from(text.toLowerCase()))).toBe(text)
    expect(Result.getOrNull(Address.from(`0x${text.slice(2).toUpperCase()}`))).toBe(text)
  })

  it("an address refuses mixed case that is not the checksum", () => {
    forAll([address, fc.nat(39)], (right, place) => {
      const at = place + 2
      const other = right.charAt(at) === right.charAt(at).toLowerCase() ? "toUpperCase" : "toLowerCase"
      const text = right.slice(0, at) + right.charAt(at)[other]() + right.slice(at + 1)
      const digits = text.slice(2)
      const mixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase()
      const why = Result.match(Address.from(text), {
        onFailure: ({ message }) => message,
        onSuccess: () => null
      })
      expect(why).toBe(
        mixed && text !== right ? "the address is of mixed case and its EIP-55 checksum does not match" : null
      )
    })
  })

  const digits = "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
  it.each([
    ...["", "0x", digits, `0x${digits.slice(1)}`, `0x${digits}0`, ` 0x${digits}`, `0x${digits}\n`],
    ...[
      `0X${digits.toLowerCase()}`,
      `0x${digits.slice(0, -1)}g`,
      "vitalik.eth",
      getIcapAddress(`0x${digits}`)
    ]
  ])("an address refuses %j", (text) => {
    const why = Result.getOrThrow(Result.flip(Address.from(text)))
    expect([why._tag, why.type]).toEqual(["InvalidValue", "Address"])
    expect(why.message).toMatch(/^expected an address|^the address/)
    const decoded = Result.getOrThrow(Result.flip(Schema.decodeResult(Address.schema)(text)))
    expect(decoded.message).toContain(why.message)
  })

  it("an address agrees with ethers, over the wire and back", () => {
    forAll([address], (value) => {
      expect(value).toBe(getAddress(value.toLowerCase()))
      expect(Schema.decodeSync(Address.schema)(Schema.encodeSync(Address.schema)(value))).toBe(value)
      expect(Address.fromWord(`0x${"0".repeat(24)}${value.slice(2).toLowerCase()}`)).toBe(value)
    })
  })
})
