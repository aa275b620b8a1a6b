import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { endpoints, exampleOf, posts } from "../../support/http/Contract.js"
import { type Answered, envelope, parseRaw, raw, send, start } from "../../support/http/Service.js"

const quiet = Logger.layer([])
const origin = "https://app.example"
const body = JSON.stringify(posts.find(({ name }) => name === "predict")?.example)

const started = start({ front: { corsOrigins: [origin, "http://localhost:5173"] } })

/** A request as a browser makes it: fetch would not let the test name the origin. */
const browser = (
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>
): Effect.Effect<Answered> => {
  const lines = Object.entries({ host: "x", connection: "close", ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`
  )
  return Effect.map(raw(port, [`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`]), parseRaw)
}

const preflight = (port: number, path: string, from: string, method = "POST") =>
  browser(port, "OPTIONS", path, {
    origin: from,
    "access-control-request-method": method,
    "access-control-request-headers": "content-type,x-api-key"
  })

const corsHeaders = ({ headers }: Answered) =>
  [...headers].filter(([name]) => name.startsWith("access-control-") || name === "vary")

describe("pages of other origins", () => {
  it.live("other origins have no access unless the operator names them: no header, no preflight", () =>
    Effect.gen(function* () {
      const { port, url } = yield* start()
      const asked = yield* preflight(port, "/predict", origin)
      expect([asked.status, envelope(asked).code, corsHeaders(asked)]).toEqual([
        405,
        "method_not_allowed",
        []
      ])
      const plain = yield* send(url, "/predict", { body, headers: { origin } })
      expect([plain.status, corsHeaders(plain)]).toEqual([200, []])
    }).pipe(Effect.provide(quiet))
  )

  it.live("other origins get the allowed methods and headers by preflight on every path", () =>
    Effect.gen(function* () {
      const { port } = yield* started
      for (const endpoint of endpoints) {
        const answer = yield* preflight(port, exampleOf(endpoint), origin, endpoint.method)
        expect([answer.status, answer.text]).toEqual([200, "{}"])
        const { headers } = answer
        expect(headers.get("access-control-allow-origin")).toBe(origin)
        expect(headers.get("access-control-allow-methods")?.split(", ")).toContain(endpoint.method)
        expect(headers.get("access-control-allow-headers")).toBe(
          "Content-Type, X-API-Key, Idempotency-Key, If-Match, Last-Event-ID, Request-Metadata, Prefer"
        )
        expect(Number(headers.get("access-control-max-age"))).toBeGreaterThan(0)
        expect(headers.has("access-control-allow-credentials")).toBe(false)
        expect(headers.get("vary")).toBe(
          "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
        )
      }
    }).pipe(Effect.provide(quiet))
  )

  it.live("named origins can read answers, errors and limit headers", () =>
    Effect.gen(function* () {
      const { port } = yield* started
      for (const [method, path, status] of [
        ["GET", "/health/live", 200],
        ["POST", "/predict", 401],
        ["GET", "/nope", 404],
        ["GET", "/predict", 405]
      ] as const) {
        const answer = yield* browser(port, method, path, { origin })
        expect([path, answer.status]).toEqual([path, status])
        expect(answer.headers.get("access-control-allow-origin")).toBe(origin)
        expect(answer.headers.get("access-control-expose-headers")).toBe(
          "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Location, Preference-Applied"
        )
        expect(answer.headers.get("vary")).toBe("Origin")
        expect(answer.headers.has("access-control-allow-credentials")).toBe(false)
      }
    }).pipe(Effect.provide(quiet))
  )

  it.live.each([
    "https://app.example.evil.example",
    "http://app.example",
    "https://app.example/",
    "https://APP.example",
    "null",
    "*"
  ])("must be named exactly: %j is another one", (other) =>
    Effect.gen(function* () {
      const { port } = yield* started
      const asked = yield* preflight(port, "/predict", other)
      expect([asked.status, corsHeaders(asked)]).toEqual([405, [["vary", "Origin"]]])
      const read = yield* browser(port, "GET", "/health/live", { origin: other })
      expect([read.status, corsHeaders(read)]).toEqual([200, [["vary", "Origin"]]])
    }).pipe(Effect.provide(quiet))
  )

  it.live("each origin gets itself back, with Vary: Origin for caches", () =>
    Effect.gen(function* () {
      const { port } = yield* started
      const other = yield* browser(port, "GET", "/health/live", { origin: "http://localhost:5173" })
      expect(other.headers.get("access-control-allow-origin")).toBe("http://localhost:5173")
      const none = yield* browser(port, "GET", "/health/live", {})
      expect(corsHeaders(none)).toEqual([["vary", "Origin"]])
    }).pipe(Effect.provide(quiet))
  )

  it.live("OPTIONS without a requested method is 405, an unknown path 404", () =>
    Effect.gen(function* () {
      const { port } = yield* started
      const plain = yield* browser(port, "OPTIONS", "/predict", { origin })
      expect([plain.status, plain.headers.get("allow")]).toEqual([405, "POST"])
      expect((yield* preflight(port, "/nope", origin)).status).toBe(404)
    }).pipe(Effect.provide(quiet))
  )

  it.live("preflights are limited like unauthenticated requests", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ front: { corsOrigins: [origin], anonymousPerMinute: 2 } })
      const statuses = []
      for (let n = 0; n < 3; n++) statuses.push((yield* preflight(port, "/predict", origin)).status)
      expect(statuses).toEqual([200, 200, 429])
    }).pipe(Effect.provide(quiet))
  )
})
