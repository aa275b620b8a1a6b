import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as HostPattern from "../../../src/domain/net/HostPattern.js"

const isMet = (pattern: string, ...headers: ReadonlyArray<string>) =>
  headers.map((header) => HostPattern.matches([Either.getOrThrow(HostPattern.parse(pattern))], header))

describe("a Host header", () => {
  it("meets its name, whatever its port, its case and a dot at its end", () => {
    const headers = [
      "castellan.internal",
      "Castellan.Internal:9464",
      "castellan.internal.",
      "castellan.internal.:80"
    ]
    expect(isMet("castellan.internal", ...headers)).toEqual(headers.map(() => true))
    expect(isMet("CASTELLAN.internal.", "castellan.internal")).toEqual([true])
    const others = [
      "",
      ":80",
      "castellan",
      "a.castellan.internal",
      "castellan.internal.example",
      "castellan.internal:x"
    ]
    expect(isMet("castellan.internal", ...others)).toEqual(others.map(() => false))
  })

  it("meets a suffix with at least a label before it", () => {
    expect(isMet(".svc.cluster.local", "a.svc.cluster.local:1", "a.b.svc.cluster.local.")).toEqual([
      true,
      true
    ])
    const others = [
      "svc.cluster.local",
      ".svc.cluster.local",
      "asvc.cluster.local",
      "a.svc.cluster.local.example"
    ]
    expect(isMet(".svc.cluster.local", ...others, "a/.svc.cluster.local", "a b.svc.cluster.local")).toEqual(
      Array(6).fill(false)
    )
  })

  it("meets a network with an address of it, in any of its forms, and with nothing else", () => {
    expect(isMet("10.0.0.0/8", "10.255.0.1", "10.0.0.0:9464", "[::ffff:10.0.0.1]:9464")).toEqual([
      true,
      true,
      true
    ])
    expect(isMet("fd00::/8", "[fd12:3::4]:9464", "[FDFF::]")).toEqual([true, true])
    expect(isMet("[fd00::]/8", "[fd12:3::4]")).toEqual([true])
    expect(isMet("fd00::1", "[fd00:0:0::1]:1", "[fd00::2]")).toEqual([true, false])
    const others = [
      "11.0.0.1",
      "10.evil.example",
      "10.0.0.1.evil.example",
      "10.0.0.1.",
      "0x0a000001",
      "167772161",
      "[fd00::1]"
    ]
    expect(isMet("10.0.0.0/8", ...others)).toEqual(others.map(() => false))
    expect(isMet("::/0", "10.0.0.1", "evil.example", "[fe80::1%25eth0]")).toEqual([false, false, false])
  })

  it.prop(
    "that is an address meets the network of it alone, and one that is a name meets no network",
    [fc.oneof(fc.ipV4(), fc.ipV6()), fc.domain()],
    ([address, name]) => {
      const header = address.includes(":") ? `[${address}]:9464` : `${address}:9464`
      expect(isMet(address, header)).toEqual([true])
      for (const all of ["0.0.0.0/0", "::/0"]) expect(isMet(all, name)).toEqual([false])
    }
  )
})

describe("a pattern that no Host header can match", () => {
  it.each([
    ["*.example.internal", "stands for every name below"],
    ["https://castellan.internal", "no header has a scheme"],
    ["castellan.internal:9464", "the port is not compared"],
    ["10.0.0.5:9464", "the port is not compared"],
    ["[::1]:9464", "the port is not compared"],
    ["castellan.internal/metrics", "no header has a path"],
    ["10.0.0.0/33", "a range of them"],
    ["10.0.0.1/8", "bits beyond the first 8"],
    ["10.0.0/8", "expected a range of IP addresses"],
    ["fd00::/129", "a range of them"],
    ["10.0.0.300", "it is no IP address"],
    ["10.0.0", "it is no IP address"],
    ["bücher.example", "write xn--bcher-kva.example"],
    [".", "expected a name"],
    ["..internal", "expected a name"],
    [".0.0.1", "it is no IP address"],
    ["a b", "expected a name"],
    ["fe80::1%eth0", "expected a name"],
    [`${"a".repeat(64)}.internal`, "expected a name"]
  ])("%s is told why", (text, why) => {
    expect(HostPattern.parse(text)).toMatchObject({ _tag: "Left", left: expect.stringContaining(why) })
  })
})
