import { connect } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as IpAddress from "../../../src/domain/net/IpAddress.js"
import { AnonymousRateLimit } from "../../../src/hosts/http/limits/AnonymousRateLimit.js"
import * as ClientAddress from "../../../src/hosts/http/limits/ClientAddress.js"
import type { HttpService } from "../../../src/hosts/http/service/HttpService.js"
import { posts } from "../../support/http/Contract.js"
import * as Service from "../../support/http/Service.js"
import { envelope, head, key, makeFront, parseRaw, raw, start } from "../../support/http/Service.js"
import * as Log from "../../support/Log.js"
import * as Time from "../../support/Time.js"

const quiet = Logger.layer([])
const ranges = (...texts: ReadonlyArray<string>) =>
  texts.map((text) => Result.getOrThrow(IpAddress.range(text)))

const asked = (change: Partial<Service.Asked>): Service.Asked => ({
  target: "/nope",
  remoteAddress: "203.0.113.7",
  ...change
})

const answerTo = (front: HttpService, change: Partial<Service.Asked> = {}) =>
  Service.ask(front, asked(change))

/** The status that an unauthenticated client gets. */
const ask = (front: HttpService, change: Partial<Service.Asked> = {}) =>
  Effect.map(answerTo(front, change), ({ status }) => status)

const times = (count: number, front: HttpService, change: Partial<Service.Asked> = {}) =>
  Effect.all(Array.from({ length: count }, () => ask(front, change)))

const body = JSON.stringify(posts.find(({ name }) => name === "predict")?.example)

const withKey = (change: Partial<Service.Asked> = {}): Partial<Service.Asked> => ({
  method: "POST",
  target: "/predict",
  headers: { "x-api-key": key, "content-type": "application/json" },
  body,
  ...change
})

/** A body that must stay unread. */
const unread = () =>
  new ReadableStream(
    {
      pull: () => {
        throw new Error("the body was read")
      }
    },
    { highWaterMark: 0 }
  )

describe("requests without a valid key", () => {
  it.effect("an address without keys is answered up to its limit, then 429 for the minute", () =>
    Effect.gen(function* () {
      const front = yield* makeFront({ front: { anonymousPerMinute: 3 } })
      expect(yield* times(5, front)).toEqual([404, 404, 404, 429, 429])
      expect(yield* ask(front, { remoteAddress: "203.0.113.8" })).toBe(404)
      yield* Time.adjust("59 seconds")
      const last = yield* answerTo(front)
      expect([last.headers.get("retry-after"), last.headers.get("content-type")]).toEqual([
        "1",
        "application/json"
      ])
      expect(JSON.parse(last.text)).toMatchObject({
        error: "rate limit exceeded",
        code: "rate_limited",
        details: [{ message: "too many requests without a valid key from this address" }]
      })
      yield* Time.adjust("1 second")
      expect(yield* times(4, front)).toEqual([404, 404, 404, 429])
    }).pipe(Effect.provide(quiet))
  )

  it.effect("unknown paths, wrong methods, pages and wrong keys count", () =>
    Effect.gen(function* () {
      const front = yield* makeFront({ front: { anonymousPerMinute: 5 } })
      const requests: ReadonlyArray<readonly [Partial<Service.Asked>, number]> = [
        [{}, 404],
        [{ target: "/predict" }, 405],
        [{ target: "/openapi.json" }, 200],
        [{ method: "POST", target: "/predict" }, 401],
        [{ method: "POST", target: "/predict", headers: { "x-api-key": "cst_wrong" } }, 401]
      ]
      for (const [change, status] of requests) expect(yield* ask(front, change)).toBe(status)
      for (const [change] of requests) expect(yield* ask(front, change)).toBe(429)
    }).pipe(Effect.provide(quiet))
  )

  it.effect("unauthenticated requests are refused before the key lookup and before the body is read", () =>
    Effect.gen(function* () {
      const front = yield* makeFront({ front: { anonymousPerMinute: 1 } })
      yield* ask(front)
      // The key would be valid, so reading the body would be a defect.
      expect(yield* ask(front, withKey({ body: unread() }))).toBe(429)
    }).pipe(Effect.provide(quiet))
  )

  it.effect("a key valid before is still accepted, and its own requests do not count", () =>
    Effect.gen(function* () {
      const front = yield* makeFront({ front: { anonymousPerMinute: 2 } })
      expect(yield* times(5, front, withKey())).toEqual([200, 200, 200, 200, 200])
      expect(yield* times(3, front)).toEqual([404, 404, 429])
      expect(yield* ask(front, withKey())).toBe(200)
      expect(yield* ask(front, withKey({ remoteAddress: "203.0.113.9" }))).toBe(200)
      // A wrong key with a valid prefix is looked up and refused.
      const alike = { headers: { ...withKey().headers, "x-api-key": `${key.slice(0, 20)}${"0".repeat(44)}` } }
      expect(yield* ask(front, withKey(alike))).toBe(401)
    }).pipe(Effect.provide(quiet))
  )

  it.effect("refused requests of an address leave one log line for any number of refusals", () => {
    const log = Log.make()
    return Effect.gen(function* () {
      const front = yield* makeFront({ front: { anonymousPerMinute: 2 } })
      yield* times(50, front)
      yield* ask(front, { remoteAddress: "203.0.113.8" })
      const codes = log.lines.map(({ annotations }) => annotations.code)
      expect(codes).toEqual(["not_found", "not_found", "rate_limited", "not_found"])
    }).pipe(Effect.provide(log.layer))
  })

  it.effect("health requests are always answered", () =>
    Effect.gen(function* () {
      const front = yield* makeFront({ front: { anonymousPerMinute: 1 } })
      yield* ask(front)
      for (const target of ["/health/live", "/health/ready"])
        expect(yield* times(3, front, { target })).toEqual([200, 200, 200])
      expect(yield* ask(front)).toBe(429)
    }).pipe(Effect.provide(quiet))
  )

  it.effect("requests refused for lack of capacity do not count", () =>
    Effect.gen(function* () {
      const front = yield* makeFront({ front: { anonymousPerMinute: 2, maxConcurrent: 0 } })
      expect(yield* times(5, front, withKey())).toEqual([503, 503, 503, 503, 503])
    }).pipe(Effect.provide(quiet))
  )

  it.live("unauthenticated requests are limited over a real socket, whatever their headers", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ front: { anonymousPerMinute: 4 } })
      const statuses: Array<number> = []
      for (const forwarded of ["1.1.1.1", "2.2.2.2", "3.3.3.3", "127.0.0.2", "::1", "4.4.4.4"]) {
        const text = yield* raw(port, [
          head("/predict", {
            "x-forwarded-for": forwarded,
            "x-real-ip": forwarded,
            forwarded: `for=${forwarded}`,
            "cf-connecting-ip": forwarded,
            "x-api-key": "cst_no",
            "content-length": "0",
            connection: "close"
          })
        ])
        const answer = parseRaw(text)
        statuses.push(answer.status)
        if (answer.status === 429) {
          expect(envelope(answer).code).toBe("rate_limited")
          expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
        }
      }
      expect(statuses).toEqual([401, 401, 401, 401, 429, 429])
    }).pipe(Effect.provide(quiet))
  )
})

describe("the memory of unknown clients", () => {
  it("memory is bounded: the least recently seen address and key are forgotten first", () => {
    const strangers = new AnonymousRateLimit({ perMinute: 2, addresses: 100, keys: 10 })
    for (let n = 0; n < 100_000; n++) {
      strangers.count(`4 ${n}`, 0)
      strangers.recognise(`cst_${String(n).padStart(40, "0")}`.replace(/^cst_0*/, "cst_"))
    }
    expect(strangers.size).toEqual({ addresses: 100, keys: 10 })
    strangers.count("4 99999", 0)
    expect(strangers.refuses("4 99999", "", 0)).toBe(true)
    expect(strangers.refuses("4 99998", "", 0)).toBe(false)
    expect(strangers.refuses("4 1", "", 0)).toBe(false)
  })

  it("memory lasts for one minute", () => {
    const strangers = new AnonymousRateLimit({ perMinute: 1 })
    strangers.count("4 1", 59_999)
    expect([strangers.refuses("4 1", "", 59_999), strangers.resetSeconds(59_999)]).toEqual([true, 1])
    expect([strangers.refuses("4 1", "", 60_000), strangers.resetSeconds(60_000)]).toEqual([false, 60])
    expect(strangers.size.addresses).toBe(0)
  })
})

const proxies = ranges("10.0.0.0/8", "192.0.2.1", "fd00::/8")
const clientOf = (remoteAddress: string | null, forwarded?: string | ReadonlyArray<string>) =>
  ClientAddress.of(
    {
      remoteAddress: Option.fromNullishOr(remoteAddress),
      headers: Headers.fromInput(forwarded === undefined ? {} : { "x-forwarded-for": forwarded })
    },
    proxies
  )
const four = (text: string) => `4 ${IpAddress.parse(text)?.value}`

describe("the address of a client", () => {
  const table: ReadonlyArray<readonly [string, string, string | undefined, string]> = [
    ["the socket's, with no proxy", "198.51.100.1", undefined, "198.51.100.1"],
    ["the socket's, whatever a stranger claims", "198.51.100.1", "203.0.113.1", "198.51.100.1"],
    ["the socket's, when a stranger claims to be a proxy", "198.51.100.1", "10.0.0.1", "198.51.100.1"],
    ["the proxy's own, when it says nothing", "10.0.0.1", undefined, "10.0.0.1"],
    ["the address in the proxy's header", "10.0.0.1", "203.0.113.1", "203.0.113.1"],
    [
      "the rightmost, the others are the client's own words",
      "10.0.0.1",
      "1.1.1.1, 203.0.113.1",
      "203.0.113.1"
    ],
    [
      "the rightmost beyond several proxies",
      "10.0.0.1",
      "1.1.1.1, 203.0.113.1, 192.0.2.1, 10.9.9.9",
      "203.0.113.1"
    ],
    ["the farthest proxy, when all are", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["with a port", "10.0.0.1", "203.0.113.1:4711", "203.0.113.1"],
    ["mapped into IPv6", "::ffff:10.0.0.1", "::ffff:203.0.113.1", "203.0.113.1"],
    ["of the proxy before a malformed address", "10.0.0.1", "203.0.113.1, unknown, 10.0.0.2", "10.0.0.2"],
    ["of the proxy before an empty word", "10.0.0.1", "203.0.113.1, , 10.0.0.2", "10.0.0.2"],
    ["of the proxy, behind a script", "10.0.0.1", "<script>", "10.0.0.1"]
  ]

  it.each(table)("the address of a client is %s", (_, socket, forwarded, expected) => {
    expect(clientOf(socket, forwarded)).toBe(four(expected))
  })

  it("the address of an IPv6 client is its /64 network", () => {
    const one = clientOf("2001:db8:1:2::1")
    expect(clientOf("2001:db8:1:2:ffff::9")).toBe(one)
    expect(clientOf("fd00::1", "[2001:db8:1:2:a:b:c:d]:443")).toBe(one)
    expect(clientOf("fd00::1%eth0", "[2001:db8:1:2::5]")).toBe(one)
    expect(clientOf("2001:db8:1:3::1")).not.toBe(one)
    expect(clientOf("fe80::1%eth0")).toBe(clientOf("fe80::1%eth1"))
    expect(clientOf("::1")).not.toBe(clientOf("0.0.0.1"))
  })

  it("a client's address is unknown if the transport does not report it", () => {
    for (const none of [null, "", "/run/castellan.sock"]) expect(clientOf(none, "203.0.113.1")).toBeNull()
  })

  it("the last proxy's entry counts if the header is repeated", () => {
    expect(clientOf("10.0.0.1", ["1.1.1.1", "203.0.113.1"])).toBe(four("203.0.113.1"))
  })

  it("the address is looked up in at most 32 entries", () => {
    const chain = Array.from({ length: 5_000 }, () => "10.0.0.9").join(",")
    expect(clientOf("10.0.0.1", `203.0.113.1,${chain}`)).toBe(four("10.0.0.9"))
  })

  it("entries that a client writes before an honest proxy's entry do not count", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.ipV4().filter((ip) => !ip.startsWith("10.") && ip !== "192.0.2.1"),
        (lie, ip) => {
          expect(clientOf("10.0.0.1", `${lie}, ${ip}`)).toBe(four(ip))
        }
      )
    )
  })
})

describe("the connections of one address", () => {
  const open = (port: number, host: string) =>
    Effect.acquireRelease(
      Effect.callback<{ readonly closed: Promise<void>; readonly end: () => void }>((resume) => {
        const socket = connect(port, host, () =>
          resume(
            Effect.succeed({
              closed: new Promise((done) => socket.once("close", done)),
              end: () => socket.destroy()
            })
          )
        )
        socket.on("error", () => {})
        socket.resume()
      }),
      ({ end }) => Effect.sync(end)
    )

  it.live("connections are limited per address, without affecting other addresses", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ server: { host: "::", maxConnectionsPerAddress: 2 } })
      const first = yield* open(port, "127.0.0.1")
      yield* open(port, "127.0.0.1")
      const third = yield* open(port, "127.0.0.1")
      yield* Effect.promise(() => third.closed)
      const other = yield* Effect.promise(() => fetch(`http://[::1]:${port}/health/live`))
      expect([other.status, JSON.parse(yield* Effect.promise(() => other.text())).status]).toEqual([
        200,
        "live"
      ])
      first.end()
      const again = yield* Effect.retry(
        Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/health/live`)),
        { times: 200 }
      )
      expect(again.status).toBe(200)
    }).pipe(Effect.provide(quiet))
  )

  it.live("connections of the operator's proxy are limited only in total", () =>
    Effect.gen(function* () {
      const { port } = yield* start({
        server: { maxConnectionsPerAddress: 1, maxConnections: 3, trustedProxies: ranges("127.0.0.1") }
      })
      yield* open(port, "127.0.0.1")
      yield* open(port, "127.0.0.1")
      const text = yield* raw(port, ["GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"])
      expect(parseRaw(text).status).toBe(200)
      yield* open(port, "127.0.0.1")
      const fourth = yield* open(port, "127.0.0.1")
      yield* Effect.promise(() => fourth.closed)
    }).pipe(Effect.provide(Layer.merge(quiet, Layer.empty)))
  )
})
