import { createServer } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as ChainRpcs from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as Egress from "../../../src/adapters/json-rpc/transport/Egress.js"
import * as Networks from "../../../src/adapters/memory/Networks.js"
import * as Connection from "../../../src/application/chain/Connection.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as IpAddress from "../../../src/domain/net/IpAddress.js"
import { acme } from "../../support/NamedBy.js"

/** Name server records of this test; all other names are unknown. */
const names: Readonly<Record<string, ReadonlyArray<string>>> = {
  "public.example": ["8.8.8.8"],
  "public6.example": ["2606:4700:4700::1111"],
  "both.example": ["8.8.8.8", "2606:4700:4700::1111"],
  "loopback.example": ["127.0.0.1"],
  "loopback6.example": ["::1"],
  "private.example": ["10.0.0.1"],
  "home.example": ["192.168.0.1"],
  "office.example": ["172.16.5.5"],
  "metadata.example": ["169.254.169.254"],
  "metadata6.example": ["fd00:ec2::254"],
  "carrier.example": ["100.64.1.1"],
  "any.example": ["0.0.0.0"],
  "any6.example": ["::"],
  "multicast.example": ["224.0.0.251"],
  "broadcast.example": ["255.255.255.255"],
  "linklocal6.example": ["fe80::1"],
  "unique6.example": ["fc00::1"],
  "mapped.example": ["::ffff:10.0.0.1"],
  "mappedhex.example": ["::ffff:a9fe:a9fe"],
  "nat64.example": ["64:ff9b::a9fe:a9fe"],
  "sixtofour.example": ["2002:a00:1::"],
  "teredo.example": ["2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  "first.example": ["10.0.0.1", "8.8.8.8"],
  "last.example": ["8.8.8.8", "10.0.0.1"],
  "among.example": ["8.8.8.8", "1.1.1.1", "::1", "9.9.9.9"],
  "xn--bcher-kva.example": ["10.0.0.1"],
  "localtest.example": ["127.0.0.53"]
}

const rules: Egress.Rules = {
  allowLoopback: false,
  allow: [],
  accounts: new Map(),
  resolve: (hostname) => {
    const found = names[hostname]
    return found === undefined
      ? Promise.reject(Object.assign(new Error("unknown"), { code: "ENOTFOUND" }))
      : Promise.resolve(found)
  }
}

const words = (text: TemplateStringsArray): ReadonlyArray<string> => text.join("").trim().split(/\s+/)

/** Hosts that are, or lead to, an address that is not public. */
const closed: ReadonlyArray<string> = [
  // loopback, plain and in the disguises of inet_aton
  ...words`
    127.0.0.1 127.0.0.2 127.255.255.254 127.1 127.0.1 2130706433 017700000001 0x7f000001
    0x7F000001 0x7f.1 0x7f.0.0.1 0x7f.0x0.0x0.0x1 0177.0.0.1 0177.1 00177.0.0.01 127.0.0.1.
    127.1. 2130706433. %31%32%37.0.0.1 127%2e0%2e0%2e1 %6c%6f%63%61%6c%68%6f%73%74
  `,
  // digits and dots that IDNA makes into ASCII
  ...words`
    １２７.０.０.１ 127。0。0。1 127．0．0．1 127｡0｡0｡1 ①②⑦.0.0.1 ⓛⓞⓒⓐⓛⓗⓞⓢⓣ ｌｏｃａｌｈｏｓｔ
  `,
  // names of this machine
  ...words`
    localhost LOCALHOST localhost. a.localhost a.b.localhost.
  `,
  // this network and private
  ...words`
    0 0.0.0.0 0.0.0.0. 00 0x0 0.1.2.3 10.0.0.1 10.1 10.255.255.255 167772161 0xa000001
    0x0a.0.0.1 012.0.0.1 012.1 172.16.0.1 172.31.255.255 0xac100001 2886729729 192.168.0.1
    192.168.1 0xc0a80001 0300.0250.0.1 3232235521
  `,
  // carrier-grade NAT, link-local, metadata services
  ...words`
    100.64.0.1 100.127.255.255 100.100.100.200 169.254.0.1 169.254.169.254 169.254.169.254.
    2852039166 0xa9fea9fe 0xa9.0xfe.0xa9.0xfe 0251.0376.0251.0376 169.16689662 168.63.129.16
    192.0.0.192
  `,
  // documentation, benchmarks, relays, multicast, reserved, broadcast
  ...words`
    192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 192.88.99.1 224.0.0.1 239.255.255.255
    240.0.0.1 255.255.255.255 4294967295 0xffffffff
  `,
  // IPv6: this machine, unspecified, link-local, site-local, private, multicast, documentation, discard
  ...words`
    [::1] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::] [0::0] [fe80::1]
    [FE80::1] [febf::1] [fec0::1] [fc00::1] [fd00::1] [fd00:ec2::254] [fd20:ce::254] [ff02::1]
    [ff05::2] [2001:db8::1] [3fff::1] [100::1] [5f00::1]
  `,
  // IPv4 inside of IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP
  ...words`
    [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:7F00:0001] [0:0:0:0:0:ffff:7f00:1]
    [::ffff:10.0.0.1] [::ffff:a00:1] [::ffff:169.254.169.254] [::ffff:a9fe:a9fe]
    [::ffff:0.0.0.0] [::127.0.0.1] [::7f00:1] [::10.0.0.1] [::169.254.169.254]
    [::ffff:0:127.0.0.1] [::ffff:0:a00:1] [64:ff9b::127.0.0.1] [64:ff9b::a00:1]
    [64:ff9b::169.254.169.254] [64:ff9b:1::a00:1] [64:ff9b:1:0:0:a::] [2002:7f00:1::]
    [2002:a00:1::1] [2002:a9fe:a9fe::] [2002:c0a8:1::] [2001::1] [2001:0:7f00:1::]
    [2001:0:4136:e378:8000:63bf:3fff:fdd2] [2a00:1::5efe:10.0.0.1] [2a00:1::200:5efe:7f00:1]
  `,
  // names that lead there
  ...words`
    loopback.example loopback6.example private.example PRIVATE.Example private.example.
    home.example office.example metadata.example metadata6.example carrier.example any.example
    any6.example multicast.example broadcast.example linklocal6.example unique6.example
    mapped.example mappedhex.example nat64.example sixtofour.example teredo.example
    first.example last.example among.example bücher.example xn--bcher-kva.example
    localtest.example
  `,
  "127.0.0.1\u00ad",
  "local\u200bhost"
]

/** Strings that are not node URLs. */
const malformed: ReadonlyArray<string> = [
  // prose-ignore-next long: a list of URLs
  ...words`
     localhost:8545 public.example //public.example /rpc http:// http:/// https://? http://#
    http://:80 http://%00 http://%zz/ http://public.example:65536/ http://public.example:-1/
    http://public.example:x/ http://1.2.3.4.5.6.7.8/ http://256.1.1.1/ http://1.2.3.256/
    http://0x100000000/ http://4294967296/ http://[::1 http://::1/ http://[::1]x/
    http://[fe80::1%25eth0]/ http://[fe80::1%eth0]/ http://[1::2::3]/ http://[::ffff:1.2.3]/
    http://[v1.fe80::a]/ http://a<b/ ftp://public.example/ file:///etc/passwd
    file://public.example/ gopher://public.example/_x dict://public.example:11211/
    ldap://public.example/ ws://public.example/ wss://public.example/ unix:/var/run/docker.sock
    javascript:alert(1) data:application/json,{} blob:http://public.example/x about:blank
    httpx://public.example/ http+unix://%2Fvar%2Frun%2Fdocker.sock/ http://user@public.example/
    http://user:password@public.example/ http://:password@public.example/
    http://public.example@127.0.0.1/ http://127.0.0.1@public.example/
    http://public.example%40127.0.0.1@x/
  `,
  "",
  " ",
  "http://a b/",
  `http://public.example/${"x".repeat(2_048)}`,
  `http://${"a".repeat(2_048)}.example/`
]

/** Public URLs, each with its displayed origin. */
const open: ReadonlyArray<readonly [string, string]> = [
  ["http://public.example", "http://public.example"],
  ["https://public.example/v2/key", "https://public.example"],
  ["HTTPS://PUBLIC.EXAMPLE:443/v2/key?k=v#part", "https://public.example"],
  ["http://public.example:8545/", "http://public.example:8545"],
  ["http://public.example./", "http://public.example."],
  ["http://public6.example/", "http://public6.example"],
  ["http://both.example/", "http://both.example"],
  ["http://8.8.8.8:8545/", "http://8.8.8.8:8545"],
  ["http://134744072/", "http://8.8.8.8"],
  ["http://[2606:4700:4700::1111]:8545/", "http://[2606:4700:4700::1111]:8545"],
  ["http://[::ffff:8.8.8.8]/", "http://[::ffff:808:808]"],
  // The second host is part of the path or of the query.
  ["http://public.example\\@127.0.0.1/", "http://public.example"],
  ["http://public.example/@127.0.0.1/", "http://public.example"],
  ["http://public.example?@127.0.0.1/", "http://public.example"],
  ["http://public.example#@127.0.0.1/", "http://public.example"],
  ["http:\\\\public.example\\", "http://public.example"],
  ["http:public.example", "http://public.example"]
]

const secret = "s3cr3t-k3y"
const withKey = (host: string, port: number) => `http://${host}:${port}/${secret}`

/** Listens on this machine, IPv4 and IPv6, and counts who comes. */
const listening = Effect.acquireRelease(
  Effect.promise(async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections++
      socket.destroy()
    })
    await new Promise<void>((resolve) => void server.listen(0, "::", resolve))
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return { server, port, connections: () => connections }
  }),
  ({ server }) => Effect.sync(() => server.close())
)

const caller: Caller = {
  requestId: "r",
  principal: {
    accountId: "acme" as AccountId,
    name: "acme",
    tier: "free",
    scopes: new Set(["read"]),
    paused: false,
    keyId: null
  }
}

/** The failure that a caller sees for the URL. */
const told = (url: string) =>
  Effect.flip(Connection.open(caller, { rpc: url })).pipe(
    Effect.provide(
      Layer.merge(ChainRpcs.layer({ egress: rules }), Networks.layer({ profiles: [], overrides: [] }))
    ),
    Effect.map(({ code, details, message }) => ({ code, details, message }))
  )

describe("a URL that a caller names", () => {
  it.live.each(closed)("a caller's URL is not followed to %s", (host) =>
    Effect.gen(function* () {
      const { connections, port } = yield* listening
      const rpc = yield* ChainRpcs.make({ egress: rules })
      const error = yield* Effect.flip(
        Effect.flatMap(rpc.connect(withKey(host, port), acme), ({ chainId }) => chainId)
      )
      expect([host, error.reason]).toEqual([host, "forbidden"])
      expect(`${error.message} ${error.origin}`).not.toContain(secret)
      expect(connections()).toBe(0)
    })
  )

  it.live.each(malformed)("a malformed node URL is refused: %j", (url) =>
    Effect.gen(function* () {
      const rpc = yield* ChainRpcs.make({ egress: rules })
      expect((yield* Effect.flip(rpc.connect(url, acme))).reason).toBe("invalidUrl")
    })
  )

  it.each(open)("a public node URL is accepted: %s", async (url, origin) => {
    const target = Result.getOrThrow(Egress.target(url, "caller", rules))
    expect(target.origin).toBe(origin)
    const { hostname } = new URL(target.connection)
    if (hostname.endsWith(".example"))
      await new Promise<void>((resolve, reject) =>
        Egress.lookup(rules, "acme")(hostname, { all: true }, (error) =>
          error === null ? resolve() : reject(error)
        )
      )
  })

  it.effect("a caller's URL may lead into a network that the operator allows, and into no other", () =>
    Effect.gen(function* () {
      const allow = ["10.20.0.0/16", "fd00:1::/32"].map((text) => Result.getOrThrow(IpAddress.range(text)))
      const reached = (url: string) => Result.isSuccess(Egress.target(url, "caller", { ...rules, allow }))
      expect(
        ["10.20.0.1", "10.20.255.255", "[fd00:1::7]", "[::ffff:10.20.3.4]"].map((host) =>
          reached(`http://${host}/`)
        )
      ).toEqual([true, true, true, true])
      expect(
        ["10.21.0.1", "127.0.0.1", "[fd00:2::7]", "[64:ff9b::10.20.0.1]", "[2002:a14:1::]"].map((host) =>
          reached(`http://${host}/`)
        )
      ).toEqual([false, false, false, false, false])
    })
  )

  const refusedAs = (message: string, urls: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      for (const answer of yield* Effect.forEach(urls, told, { concurrency: "unbounded" }))
        expect(answer).toEqual({
          code: "invalid_rpc",
          message: "invalid rpc",
          details: [{ path: "settings.rpc", message }]
        })
    })

  it.live("a refusal of a name has the same message for a missing, closed or internal host", () =>
    refusedAs("network connection failed: RPC endpoint unreachable", [
      "http://unknown.example/key",
      "http://private.example/key",
      "http://metadata.example:80/key",
      "http://last.example/key"
    ])
  )

  it.live("a refused URL with an address says that the address is forbidden", () =>
    refusedAs(
      "forbidden: the service connects only to public addresses and to addresses that its operator allows",
      [
        "http://10.0.0.1/key",
        "http://127.0.0.1:1/key",
        "http://localhost:1/key",
        "http://inside.localhost/key",
        "http://[::1]:1/key",
        "http://0xa9fea9fe/key"
      ]
    )
  )
})
