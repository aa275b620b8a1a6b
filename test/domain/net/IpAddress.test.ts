import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as IpAddress from "../../../src/domain/net/IpAddress.js"

const isIn = (range: string, address: string): boolean => {
  const parsed = IpAddress.parse(address)
  if (parsed === undefined) throw new Error(`${address} is no address`)
  return IpAddress.contains(Either.getOrThrow(IpAddress.range(range)), parsed)
}

describe("an IP address", () => {
  it.prop("mapped into IPv6 is the IPv4 address that it is", [fc.ipV4()], ([text]) => {
    expect(IpAddress.parse(`::ffff:${text}`)).toEqual(IpAddress.parse(text))
    expect(IpAddress.parse(text)?.bits).toBe(32)
  })

  it.prop("has a value that tells it from any other", [fc.ipV6(), fc.ipV6()], ([one, other]) => {
    const normal = (text: string) => new URL(`http://[${text}]/`).hostname
    expect(IpAddress.parse(one)?.value === IpAddress.parse(other)?.value).toBe(normal(one) === normal(other))
  })

  it.each([
    "",
    "1.2.3",
    "1.2.3.4.5",
    "01.2.3.4",
    "1.2.3.256",
    "[::1]",
    "::1%lo",
    "1::2::3",
    "a.b.c.d",
    "0x1"
  ])("%j is none", (text) => expect(IpAddress.parse(text)).toBeUndefined())
})

describe("a range of IP addresses", () => {
  it("has the addresses that begin alike, of its own family", () => {
    expect(isIn("10.0.0.0/8", "10.255.0.1")).toBe(true)
    expect(isIn("10.0.0.0/8", "::ffff:10.1.2.3")).toBe(true)
    expect(isIn("10.0.0.0/8", "11.0.0.0")).toBe(false)
    expect(isIn("10.0.0.1", "10.0.0.1")).toBe(true)
    expect(isIn("10.0.0.1", "10.0.0.2")).toBe(false)
    expect(isIn("0.0.0.0/0", "255.1.2.3")).toBe(true)
    expect(isIn("0.0.0.0/0", "2001::1")).toBe(false)
    expect(isIn("2001:db8::/32", "2001:db8:ffff::1")).toBe(true)
    expect(isIn("2001:db8::/32", "2001:db9::1")).toBe(false)
    expect(isIn("::/0", "::1")).toBe(true)
    expect(isIn("::/0", "1.2.3.4")).toBe(false)
    expect(isIn("fd00::1/128", "fd00::1")).toBe(true)
  })

  it.each([
    "",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.1/8",
    "10.0.0.0/-1",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10/8",
    "::ffff:10.0.0.0/104",
    "localhost",
    "*",
    "10.0.0.0/0x8"
  ])("%j is none", (text) => expect(Either.isLeft(IpAddress.range(text))).toBe(true))
})
