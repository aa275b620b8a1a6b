import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as IpAddress from "../../../src/domain/net/IpAddress.js"
import { forAll, words } from "../generators.js"

const isIn = (range: string, address: string): boolean => {
  const parsed = IpAddress.parse(address)
  if (parsed === undefined) throw new Error(`${address} is not an address`)
  return IpAddress.contains(Result.getOrThrow(IpAddress.range(range)), parsed)
}

describe("an IP address", () => {
  it("mapped into IPv6 is the IPv4 address that it is", () => {
    forAll([fc.ipV4()], (text) => {
      expect(IpAddress.parse(`::ffff:${text}`)).toEqual(IpAddress.parse(text))
      expect(IpAddress.parse(text)?.bits).toBe(32)
    })
  })

  it("an IP address has a unique value", () => {
    forAll([fc.ipV6(), fc.ipV6()], (one, other) => {
      const normal = (text: string) => new URL(`http://[${text}]/`).hostname
      expect(IpAddress.parse(one)?.value === IpAddress.parse(other)?.value).toBe(
        normal(one) === normal(other)
      )
    })
  })

  it.each(["", ...words("1.2.3 1.2.3.4.5 01.2.3.4 1.2.3.256 [::1] ::1%lo 1::2::3 a.b.c.d 0x1")])(
    "%j is none",
    (text) => expect(IpAddress.parse(text)).toBeUndefined()
  )
})

const addresses: ReadonlyArray<readonly [IpAddress.Reach, string]> = [
  [
    "public",
    // Neighbours of closed ranges; ISATAP of a public address, and lookalikes of ISATAP.
    `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
    169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0
    198.17.255.255 198.20.0.0 223.255.255.255 168.63.129.15 168.63.129.17 192.88.98.255 192.88.100.0
    198.51.101.0 203.0.112.255
    2606:4700:4700::1111 2a00::1 ::ffff:8.8.8.8 ::ffff:808:808 64:ff9b::8.8.8.8 64:ff9b::200.1.1.1
    2001:200::1 2001:db9::1 2003::1 3000::1 3fff:1000::1
    2606:4700::5efe:8.8.8.8 2606:4700::5eff:10.0.0.1 2606:4700::1:5efe:10.0.0.1`
  ],
  ["loopback", "127.0.0.1 127.255.255.254 ::1 0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 ::FFFF:7f00:1"],
  [
    "other",
    // This network, private, carrier-grade NAT; link-local, metadata services; documentation, benchmarks, relays;
    // multicast, reserved, broadcast, each to its last address.
    `0.0.0.0 0.1.2.3 0.255.255.255 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 172.16.0.1 172.31.255.255
    192.168.0.1 192.168.255.255
    169.254.0.1 169.254.169.254 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254
    192.0.2.1 192.0.2.255 198.51.100.1 198.51.100.255 203.0.113.1 203.0.113.255 198.18.0.1 198.19.255.255
    192.88.99.1 192.88.99.255
    224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255`
  ],
  [
    "other",
    // IPv6: unspecified, private, link-local, site-local, multicast, documentation, discard; IPv4 wrapped:
    // compatible, mapped, translated, NAT64 (also its local prefix), 6to4, Teredo, ISATAP; neighbours of mapped ones.
    `:: fc00::1 fdff::1 fe80::1 fec0::1 ff02::1 2001:db8::1 2001:db8:ffff::1 3fff::1 3fff:fff::1 100::1 5f00::1
    2001:1ff:ffff::1 ::8.8.8.8 ::127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe ::ffff:0:8.8.8.8
    64:ff9b::10.0.0.1 64:ff9b::127.0.0.1 64:ff9b:1::8.8.8.8 2002:7f00:1:: 2002:808:808::1 2002:ffff::1
    2001::1 2001:0:7f00:1:: 2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:10.0.0.1
    ::fffe:808:808 64:ff9b::1:808:808`
  ],
  [
    "other",
    // No addresses.
    `localhost 1.2.3 1.2.3.4.5 256.1.1.1 01.1.1.1 0x7f.0.0.1 fe80::1%eth0 ::: 1::2::3 1:2:3:4:5:6:7
    1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7::8 ::12345 2606:4700::12345 2606:2:3:4::5:6:7:8 2606:2:3:4::5:6:7:8::9
    ::256.1.1.1 2606:4700::1.2.3.256 ::1.2.3 [::1]`
  ]
]

describe("the reach of an IP address", () => {
  it.each(addresses)("the reach of an IP address is %s", (reach, texts) => {
    for (const text of words(texts)) expect(IpAddress.reach(text), text).toBe(reach)
  })

  it("the reach of an empty string is other", () => expect(IpAddress.reach("")).toBe("other"))

  it("the reach of an IP address does not depend on how an IPv6 address is written", () => {
    forAll(
      [
        fc.array(fc.constantFrom(0, 1, 0xffff, 0x7f00, 0x2001, 0xdb8, 0xfe80, 0x64), {
          minLength: 8,
          maxLength: 8
        })
      ],
      (groups) => {
        const long = groups.map((group) => group.toString(16).padStart(4, "0")).join(":")
        const short = new URL(`http://[${long}]/`).hostname.slice(1, -1)
        expect(IpAddress.reach(short)).toBe(IpAddress.reach(long))
        expect(IpAddress.reach(long.toUpperCase())).toBe(IpAddress.reach(long))
      }
    )
  })

  it("the reach of an IP address is the same for an IPv4 address and its mapped form", () => {
    forAll([fc.ipV4()], (text) => {
      expect(IpAddress.reach(`::ffff:${text}`)).toBe(IpAddress.reach(text))
    })
  })
})

describe("a range of IP addresses", () => {
  it("a range of IP addresses has the addresses with its prefix, of its own family", () => {
    const inside = [
      ["10.0.0.0/8", "10.255.0.1", "::ffff:10.1.2.3"],
      ["10.0.0.1", "10.0.0.1"],
      ["0.0.0.0/0", "255.1.2.3"],
      ["2001:db8::/32", "2001:db8:ffff::1"],
      ["::/0", "::1"],
      ["fd00::1/128", "fd00::1"]
    ] as const
    const outside = [
      ["10.0.0.0/8", "11.0.0.0"],
      ["10.0.0.1", "10.0.0.2"],
      ["0.0.0.0/0", "2001::1"],
      ["2001:db8::/32", "2001:db9::1"],
      ["::/0", "1.2.3.4"]
    ] as const
    for (const [range, ...all] of inside) for (const each of all) expect(isIn(range, each)).toBe(true)
    for (const [range, each] of outside) expect(isIn(range, each)).toBe(false)
  })

  const none = `10.0.0.0/33 ::/129 10.0.0.1/8 10.0.0.0/-1 10.0.0.0/ 10.0.0.0/8/8 10/8 ::ffff:10.0.0.0/104
    ::ffff:10.0.0.0/8 ::FFFF:10.0.0.0/8 0::ffff:10.0.0.1 localhost * 10.0.0.0/0x8`
  it.each(["", ...words(none)])("%j is none", (text) =>
    expect(Result.isFailure(IpAddress.range(text))).toBe(true)
  )
})
