import { describe, expect, it, vi } from "@effect/vitest"
import * as Brand from "effect/Brand"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as EthersChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as Sender from "../../../src/adapters/json-rpc/services/WebhookSender.js"
import * as Egress from "../../../src/adapters/json-rpc/transport/Egress.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import { WebhookSender } from "../../../src/application/ports/Webhooks.js"
import * as IpAddress from "../../../src/domain/net/IpAddress.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { honest, httpNode } from "../../support/HostileNode.js"
import { acme } from "../../support/NamedBy.js"

const rules = (allowLoopback: boolean, answers: ReadonlyArray<string> = []): Egress.Rules => ({
  allowLoopback,
  allow: [],
  accounts: new Map(),
  resolve: () => Promise.resolve(answers)
})
const range = (text: string) => Result.getOrThrow(IpAddress.range(text))
/** Private networks that every account may reach, and others that one may. */
const allowing: Egress.Rules = {
  ...rules(false),
  allow: [range("10.20.0.0/16")],
  accounts: new Map([
    ["acme", [range("10.30.0.0/16"), range("fd00::/8")]],
    ["another", [range("10.40.0.0/16")]]
  ])
}
const target = (url: string, trust: Egress.Trust, allowLoopback = false) =>
  Result.match(Egress.target(url, trust, rules(allowLoopback)), {
    onFailure: (reason) => reason,
    onSuccess: ({ origin }) => origin
  })

describe("the URL of a caller", () => {
  it("a caller's URL may be of this machine when loopback is allowed, and of nothing else private", () => {
    for (const host of ["127.0.0.1", "127.1", "localhost", "a.localhost", "[::1]", "[::ffff:7f00:1]"])
      expect(target(`http://${host}:8545`, "caller", true)).toMatch(/^http:/)
    for (const host of ["0.0.0.0", "10.0.0.1", "192.168.0.1", "169.254.169.254", "[::]", "[fe80::1]"])
      expect(target(`http://${host}:8545`, "caller", true)).toBe("forbidden")
  })

  it("is of a name that only ends as that of this machine does: a name is judged when it is connected to", () => {
    expect(target("http://notlocalhost", "caller")).toBe("http://notlocalhost")
  })

  it("a caller's URL may be in networks that the operator allows to all accounts or to this one", () => {
    const reaches = (host: string, account: string) =>
      Result.isSuccess(Egress.target(`http://${host}:8545`, "caller", allowing, account))
    expect(
      ["10.20.0.1", "10.20.255.255", "10.30.0.1", "[fd00::1]"].map((host) => reaches(host, "acme"))
    ).toEqual([true, true, true, true])
    expect(["10.20.0.1", "10.30.0.1", "[fd00::1]"].map((host) => reaches(host, "other"))).toEqual([
      true,
      false,
      false
    ])
    for (const account of ["acme", "other", ""]) expect(reaches("10.21.0.0", account)).toBe(false)
  })

  it("is connected to by scheme, host and port, and asked for path and query; its fragment goes nowhere", () => {
    const found = Egress.target("HTTPS://Node.Example.:8545/v1?key=1#part", "caller", rules(false), "acme")
    expect(Result.getOrThrow(found)).toEqual({
      trust: "caller",
      scope: "acme",
      connection: "https://node.example:8545",
      path: "/v1?key=1",
      origin: "https://node.example.:8545",
      href: "https://node.example.:8545/v1?key=1"
    })
  })

  it("the operator's own may be of any address", () => {
    for (const host of ["127.0.0.1", "10.0.0.1", "localhost", "[::1]", "[fd00::1]", "node.internal"])
      expect(target(`http://${host}:8545`, "operator")).toMatch(/^http:/)
  })
})

const look = (
  answers: ReadonlyArray<string>,
  options: { all?: boolean; family?: number } = {},
  allowLoopback = false
) =>
  new Promise((resolve) => {
    Egress.lookup(rules(allowLoopback, answers), "acme")("node.example", options, (error, address, family) =>
      resolve(error === null ? [address, family] : error)
    )
  })

describe("the resolution of a caller's host name", () => {
  it("hands on exactly the addresses that were checked", async () => {
    const answers = ["1.1.1.1", "2606:4700::1111"]
    expect(await look(answers, { all: true })).toEqual([
      [
        { address: "1.1.1.1", family: 4 },
        { address: "2606:4700::1111", family: 6 }
      ],
      undefined
    ])
    expect(await look(answers)).toEqual(["1.1.1.1", 4])
    expect(await look(answers, { family: 6 })).toEqual(["2606:4700::1111", 6])
  })

  it("one bad address spoils the name, wherever it stands", async () => {
    for (const bad of ["10.0.0.1", "127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1", "nonsense"])
      for (const answers of [[bad], [bad, "1.1.1.1"], ["1.1.1.1", "8.8.8.8", bad]])
        for (const options of [{}, { all: true }, { family: 4 }, { family: 6 }])
          expect(await look(answers, options)).toBeInstanceOf(Egress.Blocked)
  })

  it("a name without a usable address is an error, not a connection", async () => {
    expect(await look([])).toMatchObject({ code: "ENOTFOUND" })
    expect(await look(["1.1.1.1"], { family: 6 })).toMatchObject({ code: "ENOTFOUND" })
  })
})

describe("the resolution of a name in a network that the operator allows", () => {
  const found = (address: string, account: string, hostname = "node.example", allowLoopback = false) =>
    new Promise((resolve) => {
      const answering = { ...allowing, allowLoopback, resolve: () => Promise.resolve([address]) }
      Egress.lookup(answering, account)(hostname, {}, (error, ...answer) =>
        resolve(error === null ? answer : error)
      )
    })

  it("name resolution is limited to the account that may reach the network", async () => {
    expect(await found("10.20.0.1", "other")).toEqual(["10.20.0.1", 4])
    expect(await found("10.30.0.1", "acme")).toEqual(["10.30.0.1", 4])
    for (const [address, account] of [
      ["10.30.0.1", "another"],
      ["10.40.0.1", "acme"],
      ["10.50.0.1", "acme"]
    ] as const)
      expect(await found(address, account)).toBeInstanceOf(Egress.Blocked)
  })

  it("is not asked for where the name is of this machine, whatever a name server says", async () => {
    for (const hostname of ["localhost", "a.localhost"]) {
      expect(await found("1.1.1.1", "acme", hostname)).toBeInstanceOf(Egress.Blocked)
      expect(await found("1.1.1.1", "acme", hostname, true)).toEqual(["127.0.0.1", 4])
    }
  })
})

describe("connections to a host name", () => {
  const serve = () => httpNode((response, body) => honest(response, body, () => "0x1"))
  const withName = (url: string) => url.replace("127.0.0.1", "node.example")

  it.live("a name that leads to a forbidden address is forbidden and not connected to", () =>
    Effect.gen(function* () {
      const node = yield* Effect.acquireRelease(Effect.promise(serve), (node) => Effect.promise(node.close))
      for (const answers of [["127.0.0.1"], ["1.1.1.1", "127.0.0.1"]]) {
        const rpc = yield* EthersChainRpc.make({ egress: rules(false, answers) })
        const chain = yield* rpc.connect(withName(node.url), acme)
        const error = yield* Effect.flip(chain.chainId)
        expect(error.reason).toBe("forbidden")
      }
      expect(node.connections()).toBe(0)
    })
  )

  it.live(
    "each connection is resolved and checked once; a name that moves inside is caught at the next one",
    () =>
      Effect.gen(function* () {
        const node = yield* Effect.acquireRelease(Effect.promise(serve), (node) => Effect.promise(node.close))
        const answers = [["127.0.0.1"], ["10.0.0.1"]]
        let resolutions = 0
        const rpc = yield* EthersChainRpc.make({
          egress: {
            allowLoopback: true,
            resolve: () => Promise.resolve(answers[Math.min(resolutions++, 1)] ?? [])
          }
        })
        const chain = yield* rpc.connect(withName(node.url), acme)
        expect(yield* chain.chainId).toBe(1n)
        expect(
          yield* chain.block("latest").pipe(
            Effect.flip,
            Effect.map(({ reason }) => reason)
          )
        ).toBe("notAnRpc")
        expect([resolutions, node.connections()]).toEqual([1, 1])
        yield* Effect.promise(async () => {
          const drained = node.drained()
          await node.close()
          await drained
        })
        const error = yield* Effect.flip(chain.balance(Address.zero))
        expect(error.reason).toBe("forbidden")
        expect(resolutions).toBeGreaterThan(1)
      })
  )

  const proxyNames = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]

  it.live("go to the node itself, whatever proxies the environment names", () =>
    Effect.gen(function* () {
      const [node, proxy] = yield* Effect.all([
        Effect.acquireRelease(Effect.promise(serve), (node) => Effect.promise(node.close)),
        Effect.acquireRelease(Effect.promise(serve), (node) => Effect.promise(node.close))
      ])
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          for (const name of proxyNames) vi.stubEnv(name, proxy.url)
          vi.stubEnv("NODE_USE_ENV_PROXY", "1")
        }),
        () => Effect.sync(() => vi.unstubAllEnvs())
      )
      const rpc = yield* EthersChainRpc.make({ egress: rules(true) })
      for (const by of ["operator", acme] as const) {
        const chain = yield* rpc.connect(node.url, by)
        expect(yield* chain.chainId).toBe(1n)
      }
      expect([node.seen.length, proxy.connections()]).toEqual([2, 0])
    })
  )

  it.live("a name that does not resolve is unreachable", () =>
    Effect.gen(function* () {
      const rpc = yield* EthersChainRpc.make({
        egress: { resolve: () => Promise.reject(Object.assign(new Error(), { code: "ENOTFOUND" })) }
      })
      const chain = yield* rpc.connect("https://node.example/v1/0123456789abcdef", acme)
      const error = yield* Effect.flip(chain.chainId)
      expect(error).toMatchObject({ reason: "unreachable", origin: "https://node.example" })
      expect(error.message).not.toContain("0123456789abcdef")
    })
  )

  it.live("a webhook's sender tells a forbidden address from a name that does not resolve", () =>
    Effect.gen(function* () {
      const node = yield* Effect.acquireRelease(Effect.promise(serve), (node) => Effect.promise(node.close))
      const sent = (egress: Partial<Egress.Rules>) =>
        Effect.gen(function* () {
          const sender = yield* WebhookSender
          const refused = sender.send(
            Brand.nominal<AccountId>()("acme"),
            Redacted.make(withName(node.url)),
            {},
            "{}"
          )
          return (yield* Effect.flip(refused)).message
        }).pipe(Effect.provide(Sender.layer({ egress })))
      expect(yield* sent(rules(false, ["10.0.0.1"]))).toBe("the address is not allowed")
      const unknown = () => Promise.reject(Object.assign(new Error(), { code: "ENOTFOUND" }))
      expect(yield* sent({ resolve: unknown })).toBe("the connection failed (ENOTFOUND)")
      expect(yield* sent({ resolve: () => Promise.resolve([]) })).toBe("the connection failed (ENOTFOUND)")
      expect(node.seen.length).toBe(0)
    })
  )

  it.live("a caller never uses a connection of the operator to a private address", () =>
    Effect.gen(function* () {
      const node = yield* Effect.acquireRelease(Effect.promise(serve), (node) => Effect.promise(node.close))
      const rpc = yield* EthersChainRpc.make({ egress: rules(false, ["127.0.0.1"]) })
      const own = yield* rpc.connect(node.url, "operator")
      expect(yield* own.chainId).toBe(1n)
      expect((yield* Effect.flip(rpc.connect(node.url, acme))).reason).toBe("forbidden")
      const named = yield* rpc.connect(withName(node.url), acme)
      expect((yield* Effect.flip(named.chainId)).reason).toBe("forbidden")
      expect(node.seen.length).toBe(1)
    })
  )
})
