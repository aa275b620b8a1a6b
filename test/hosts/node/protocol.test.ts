import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { posts } from "../../support/http/Contract.js"
import { envelope, key, parseRaw, raw, start } from "../../support/http/Service.js"

const quiet = Logger.layer([])
const body = JSON.stringify(posts.find(({ name }) => name === "predict")?.example)

describe("forms of requests", () => {
  it.live("HTTP/1.0 works without a host header, and the connection closes unless kept alive", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const plain = parseRaw(yield* raw(port, ["GET /health/live HTTP/1.0\r\n\r\n"]))
      expect([plain.status, plain.text, plain.headers.get("connection")]).toEqual([
        200,
        '{"status":"live"}',
        "close"
      ])
      const kept = yield* raw(port, [
        "GET /health/live HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
        "GET /nope HTTP/1.0\r\n\r\n"
      ])
      expect([...kept.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(["200", "404"])
      const posted = parseRaw(
        yield* raw(port, [
          `POST /predict HTTP/1.0\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
        ])
      )
      expect(posted.status).toBe(200)
    }).pipe(Effect.provide(quiet))
  )

  it.live.each([
    ["GET http://any.host/health/live", 200],
    ["GET http://any.host", 404],
    ["GET http://any.host/nope", 404],
    ["GET /health/live#part", 404],
    ["GET /health/%6cive", 404],
    ["GET /requests/%", 404],
    ["GET /requests/a%2fb", 401],
    ["GET /requests/a;b", 404],
    ["PROPFIND /predict", 405],
    ["DELETE /predict", 405]
  ] as const)("%s is answered %i, with a body in the envelope unless it is 200", ([line, status]) =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const answer = parseRaw(yield* raw(port, [`${line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`]))
      expect(answer.status).toBe(status)
      if (status !== 200) expect(envelope(answer).requestId).toBe(answer.headers.get("x-request-id"))
    }).pipe(Effect.provide(quiet))
  )

  it.live("an upgrade request gets its answer in HTTP/1.1", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      for (const upgrade of ["websocket", "h2c"]) {
        const answer = parseRaw(
          yield* raw(port, [
            `GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close, upgrade\r\nupgrade: ${upgrade}\r\n\r\n`
          ])
        )
        expect([upgrade, answer.status]).toEqual([upgrade, 200])
      }
    }).pipe(Effect.provide(quiet))
  )

  it.live("HEAD of every page returns the headers of GET without the body", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const ask = (method: string, path: string) =>
        Effect.map(
          raw(port, [`${method} ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`]),
          parseRaw
        )
      for (const path of ["/health/live", "/health/ready", "/openapi.json", "/docs"]) {
        const [get, bare] = [yield* ask("GET", path), yield* ask("HEAD", path)]
        expect([path, bare.status, bare.text]).toEqual([path, 200, ""])
        for (const name of ["content-length", "content-type"])
          expect(bare.headers.get(name)).toBe(get.headers.get(name))
      }
    }).pipe(Effect.provide(quiet))
  )
})

describe("connections that waste time", () => {
  const patience = { headersTimeoutMillis: 300, requestTimeoutMillis: 300 }

  it.live("a silent connection is closed", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ server: patience })
      yield* Effect.timeout(raw(port, []), "10 seconds")
    }).pipe(Effect.provide(quiet))
  )

  it.live("a connection idle after its answer is closed", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ server: { keepAliveTimeoutMillis: 100 } })
      const text = yield* Effect.timeout(
        raw(port, ["GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n"]),
        "10 seconds"
      )
      expect(parseRaw(text).headers.get("connection")).toBe("keep-alive")
    }).pipe(Effect.provide(quiet))
  )
})
