import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as HostPattern from "../../../src/domain/net/HostPattern.js"
import { forAll, words } from "../generators.js"

const isMet = (pattern: string, header: string) =>
  HostPattern.matches([Result.getOrThrow(HostPattern.parse(pattern))], header)

describe("a Host header", () => {
  it.each([
    // Its name, whatever its port, its case and a dot at its end.
    [
      "castellan.internal",
      "castellan.internal Castellan.Internal:9464 castellan.internal. castellan.internal.:80"
    ],
    ["CASTELLAN.internal.", "castellan.internal"],
    // A suffix with at least a label before it.
    [".svc.cluster.local", "a.svc.cluster.local:1 a.b.svc.cluster.local."],
    // A network with an address of it, in any of its forms.
    ["10.0.0.0/8", "10.255.0.1 10.0.0.0:9464 [::ffff:10.0.0.1]:9464"],
    ["fd00::/8", "[fd12:3::4]:9464 [FDFF::]"],
    ["[fd00::]/8", "[fd12:3::4]"],
    ["fd00::1", "[fd00:0:0::1]:1"]
  ])("a Host header meets %s: %s", (pattern, headers) => {
    for (const header of words(headers)) expect(isMet(pattern, header), header).toBe(true)
  })

  it.each([
    [
      "castellan.internal",
      ":80 castellan a.castellan.internal castellan.internal.example castellan.internal:x"
    ],
    [
      ".svc.cluster.local",
      "svc.cluster.local .svc.cluster.local asvc.cluster.local a.svc.cluster.local.example"
    ],
    [".svc.cluster.local", "a/.svc.cluster.local"],
    ["10.0.0.0/8", "11.0.0.1 10.evil.example 10.0.0.1.evil.example 10.0.0.1. 0x0a000001 167772161 [fd00::1]"],
    ["fd00::1", "[fd00::2]"],
    ["::/0", "10.0.0.1 evil.example [fe80::1%25eth0]"]
  ])("a Host header does not meet %s: %s", (pattern, headers) => {
    for (const header of words(headers)) expect(isMet(pattern, header), header).toBe(false)
    for (const header of ["", "a b.svc.cluster.local"]) expect(isMet(pattern, header), header).toBe(false)
  })

  it("a Host header with an address matches only its network, a name matches no network", () => {
    forAll([fc.oneof(fc.ipV4(), fc.ipV6()), fc.domain()], (address, name) => {
      const header = address.includes(":") ? `[${address}]:9464` : `${address}:9464`
      expect(isMet(address, header)).toBe(true)
      for (const all of ["0.0.0.0/0", "::/0"]) expect(isMet(all, name)).toBe(false)
    })
  })
})

describe("a pattern that no Host header can match", () => {
  it.each([
    ["*.example.internal", "stands for every name below"],
    ["https://castellan.internal", "a Host header has no scheme"],
    ["castellan.internal:9464", "the port is not compared"],
    ["10.0.0.5:9464", "the port is not compared"],
    ["[::1]:9464", "the port is not compared"],
    ["castellan.internal/metrics", "a Host header has no path"],
    ["10.0.0.0/33", "a range of them"],
    ["10.0.0.1/8", "bits beyond the first 8"],
    ["10.0.0/8", "expected a range of IP addresses"],
    ["fd00::/129", "a range of them"],
    ["10.0.0.300", "it is not an IP address"],
    ["10.0.0", "it is not an IP address"],
    ["bücher.example", "write xn--bcher-kva.example"],
    [".", "expected a name"],
    ["..internal", "expected a name"],
    [".0.0.1", "it is not an IP address"],
    ["a b", "expected a name"],
    ["fe80::1%eth0", "expected a name"],
    [`${"a".repeat(64)}.internal`, "expected a name"]
  ])("pattern %s is refused with its reason", (text, why) => {
    expect(HostPattern.parse(text)).toMatchObject({ _tag: "Failure", failure: expect.stringContaining(why) })
  })
})
