import { describe, expect, it } from "@effect/vitest"
import * as ClientData from "../../../src/domain/signature/ClientData.js"

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
/** The strings that begin at the places that are found, each up to its next quote. */
const found = (text: string): ReadonlyArray<string> =>
  ClientData.outermostStrings(bytesOf(text)).map((at) => text.slice(at + 1, text.indexOf('"', at + 1)))

describe("the strings of the outermost object", () => {
  it.each<readonly [text: string, names: string]>([
    ['{"a":"b","c":1}', "a b c"],
    ["{}", ""],
    ["", ""],
    ...[" ", "\t", "\n", "\r", " \t\r\n "].map((white) => [`${white}{"a":1}`, "a"] as const),
    // None behind anything else, or where the text begins with no object.
    ...["x", "1", "\u000b", ",", ":", "\u0000"].map((other) => [`${other}{"a":1}`, ""] as const),
    ...['"a"', '"a":{"b":1}', '["a"]', '[{"a":1}]', ']{"a":1}', '}{"a":1}'].map(
      (text) => [text, ""] as const
    ),
    // Not those of objects and arrays inside it, nor behind its end.
    ['{"a":{"b":"c"},"d":["e",["f"]],"g":[{"h":"i"}],"j":"k"}', "a d g j k"],
    ...['{"a":1}"b"', '{"a":1}{"b":1}', '{"a":1]{"b":1}', '{"a":1} "b"', '{"a":{"b":1}]{"c":1}'].map(
      (text) => [text, "a"] as const
    ),
    ['{"{[":"}]","a":1}', "{[ }] a"]
  ])("of %j are %s", (text, names) => {
    expect(found(text).join(" ")).toBe(names)
  })

  it.each([
    ['{"a":"b","c":1}', [1, 5, 9]],
    ['{"a\\"b":"c"}', [1, 8]],
    ['{"a\\\\":"c"}', [1, 7]],
    ['{"a', [1]],
    ['{"a\\', [1]]
  ])("outermost strings of %j begin at %j", (text, places) => {
    expect(ClientData.outermostStrings(bytesOf(text))).toEqual(places)
  })
})

describe("members", () => {
  const usual = '{"type":"webauthn.get","challenge":"abc","origin":"https://a.b"}'
  const members = (text: string, type = '"type"', challenge = '"challenge"') =>
    ClientData.areMembers(bytesOf(text), BigInt(text.indexOf(type)), BigInt(text.indexOf(challenge)))

  it("clientDataJSON members are accepted where every browser writes them", () => {
    expect(members(usual)).toBe(true)
    expect(ClientData.areMembers(bytesOf(usual), 1n, 23n)).toBe(true)
  })

  it("clientDataJSON members are accepted only in an object, and behind a comma", () => {
    expect(ClientData.areMembers(bytesOf(usual.replace("{", "[")), 1n, 23n)).toBe(false)
    expect(ClientData.areMembers(bytesOf(usual.replace(",", ":")), 1n, 23n)).toBe(false)
    // Like the wallets, only those two bytes are checked here; the bytes between are compared with the type elsewhere.
    expect(ClientData.areMembers(bytesOf(`{${"x".repeat(21)},"challenge":"abc"}`), 1n, 23n)).toBe(true)
  })

  it.each([
    [true, '{"challenge":"abc","type":"webauthn.get"}'],
    [true, '{"origin":"a","type":"webauthn.get","challenge":"abc"}'],
    [true, '{"type":"webauthn.get", "challenge":"abc"}'],
    [true, '{ "type":"webauthn.get","challenge":"abc"}'],
    [false, '{"a":{"type":"webauthn.get"},"challenge":"abc"}'],
    [false, '{"type":"webauthn.get","a":{"challenge":"abc"}}'],
    [false, '{"a":{"type":"webauthn.get","challenge":"abc"}}']
  ])("clientDataJSON members are members of the object itself, in any order: %s of %s", (expected, text) => {
    expect(members(text)).toBe(expected)
  })

  it("clientDataJSON members are refused where no string begins", () => {
    expect(ClientData.areMembers(bytesOf(usual), 2n, 23n)).toBe(false)
    expect(ClientData.areMembers(bytesOf(usual), 1n, 24n)).toBe(false)
    expect(ClientData.areMembers(bytesOf(usual), 23n, 1n)).toBe(true)
    expect(ClientData.areMembers(bytesOf(usual), 2n ** 64n, 23n)).toBe(false)
  })
})
