import { describe, expect, it } from "@effect/vitest"
import * as ClientData from "../../../src/domain/op/ClientData.js"

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
/** The strings that begin at the places that are found, each up to its next quote. */
const found = (text: string): ReadonlyArray<string> =>
  ClientData.outermostStrings(bytesOf(text)).map((at) => text.slice(at + 1, text.indexOf('"', at + 1)))

describe("the strings of the outermost object", () => {
  it("are its names and its values that are strings, in their order", () => {
    expect(ClientData.outermostStrings(bytesOf('{"a":"b","c":1}'))).toEqual([1, 5, 9])
    expect(found('{"a":"b","c":1}')).toEqual(["a", "b", "c"])
    expect(found("{}")).toEqual([])
    expect(found("")).toEqual([])
  })

  it.each([" ", "\t", "\n", "\r", " \t\r\n "])("begin behind white space: %j", (white) => {
    expect(found(`${white}{"a":1}`)).toEqual(["a"])
  })

  it.each(["x", "1", "\u000b", ",", ":", "\u0000"])("are none behind anything else: %j", (other) => {
    expect(found(`${other}{"a":1}`)).toEqual([])
  })

  it.each(['"a"', '"a":{"b":1}', '["a"]', '[{"a":1}]', ']{"a":1}', '}{"a":1}'])(
    "are none where the text begins with no object: %s",
    (text) => {
      expect(found(text)).toEqual([])
    }
  )

  it("are not those of objects and arrays inside it, and go on behind them", () => {
    expect(found('{"a":{"b":"c"},"d":["e",["f"]],"g":[{"h":"i"}],"j":"k"}')).toEqual([
      "a",
      "d",
      "g",
      "j",
      "k"
    ])
  })

  it("end where the object does", () => {
    expect(found('{"a":1}"b"')).toEqual(["a"])
    expect(found('{"a":1}{"b":1}')).toEqual(["a"])
    expect(found('{"a":1]{"b":1}')).toEqual(["a"])
    expect(found('{"a":1} "b"')).toEqual(["a"])
    expect(found('{"a":{"b":1}]{"c":1}')).toEqual(["a"])
  })

  it("hold brackets, and quotes behind a backslash, as text", () => {
    expect(found('{"{[":"}]","a":1}')).toEqual(["{[", "}]", "a"])
    expect(ClientData.outermostStrings(bytesOf('{"a\\"b":"c"}'))).toEqual([1, 8])
    expect(ClientData.outermostStrings(bytesOf('{"a\\\\":"c"}'))).toEqual([1, 7])
  })

  it("are counted as they begin where the text ends inside of one", () => {
    expect(ClientData.outermostStrings(bytesOf('{"a'))).toEqual([1])
    expect(ClientData.outermostStrings(bytesOf('{"a\\'))).toEqual([1])
  })
})

describe("members", () => {
  const usual = '{"type":"webauthn.get","challenge":"abc","origin":"https://a.b"}'
  const members = (text: string, type = '"type"', challenge = '"challenge"') =>
    ClientData.areMembers(bytesOf(text), BigInt(text.indexOf(type)), BigInt(text.indexOf(challenge)))

  it("are where every browser writes them", () => {
    expect(members(usual)).toBe(true)
    expect(ClientData.areMembers(bytesOf(usual), 1n, 23n)).toBe(true)
  })

  it("stand there only in an object, and behind a comma", () => {
    expect(ClientData.areMembers(bytesOf(usual.replace("{", "[")), 1n, 23n)).toBe(false)
    expect(ClientData.areMembers(bytesOf(usual.replace(",", ":")), 1n, 23n)).toBe(false)
    // By those two bytes alone, as the wallets do: what is between them is held against the type's own bytes elsewhere.
    expect(ClientData.areMembers(bytesOf(`{${"x".repeat(21)},"challenge":"abc"}`), 1n, 23n)).toBe(true)
  })

  it("may stand in another order", () => {
    expect(members('{"challenge":"abc","type":"webauthn.get"}')).toBe(true)
    expect(members('{"origin":"a","type":"webauthn.get","challenge":"abc"}')).toBe(true)
    expect(members('{"type":"webauthn.get", "challenge":"abc"}')).toBe(true)
    expect(members('{ "type":"webauthn.get","challenge":"abc"}')).toBe(true)
  })

  it("are not members of an object inside it: neither the one nor the other", () => {
    expect(members('{"a":{"type":"webauthn.get"},"challenge":"abc"}')).toBe(false)
    expect(members('{"type":"webauthn.get","a":{"challenge":"abc"}}')).toBe(false)
    expect(members('{"a":{"type":"webauthn.get","challenge":"abc"}}')).toBe(false)
  })

  it("are not where no string begins", () => {
    expect(ClientData.areMembers(bytesOf(usual), 2n, 23n)).toBe(false)
    expect(ClientData.areMembers(bytesOf(usual), 1n, 24n)).toBe(false)
    expect(ClientData.areMembers(bytesOf(usual), 23n, 1n)).toBe(true)
    expect(ClientData.areMembers(bytesOf(usual), 2n ** 64n, 23n)).toBe(false)
  })
})
