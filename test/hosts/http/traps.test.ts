import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { endpoints, posts } from "../../support/http/Contract.js"
import { envelope, head, key, parseRaw, raw, send, start } from "../../support/http/Service.js"

const example = (name: string) => posts.find((endpoint) => endpoint.name === name)?.example
const good = JSON.stringify(example("predict"))
const MiB = 1024 * 1024

/** Valid JSON of exactly this many bytes; every endpoint refuses its unknown field. */
const padded = (bytes: number) => `{"padding":"${"x".repeat(bytes - 14)}"}`

const chunked = (body: string | Uint8Array, size = 65_536) => {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body
  let at = 0
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.subarray(at, at + size))
      at += size
    }
  })
}

const stream = (body: string | Uint8Array): RequestInit =>
  ({ body: chunked(body), duplex: "half" }) as RequestInit

describe("numbers", () => {
  it.live("integers are written as integers, in bodies and in JSON parameters", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const told = (path: string, body: string) => Effect.map(send(url, path, { body }), envelope)
      for (const number of ["1.0", "1e0", "10E-1"]) {
        const { code, details } = yield* told("/read", `{"reads":[{"funcParams":[[${number}]]}]}`)
        expect([code, details[0]]).toEqual([
          "invalid_request",
          { path: "reads[0].funcParams[0][0]", message: "the JSON number must be written as an integer" }
        ])
      }
      const percent = yield* told("/execute", '{"settings":{"percentTxGasOvershoot":50.0}}')
      expect(percent.details.map(({ message }) => message)).not.toContain(
        "the JSON number must be written as an integer"
      )
    })
  )

  it.live("numbers are 400 at their place if JSON.parse would round them", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const cases: ReadonlyArray<readonly [string, string]> = [
        ["/read", '{"reads":[{"funcParams":[[9007199254740991.4,1]]}]}'],
        ["/execute", '{"operations":[{"funcParams":[[[4503599627370497.2]]]}]}'],
        ["/transactSigner", '{"funcParams":[{"a":9007199254740993}]}'],
        ["/getEvents", '{"fields":{"amount":[9007199254740993]}}'],
        ["/estimateGas", '{"settings":{"useABI":[{"inputs":[1e400]}]}}'],
        ["/getbundleraddress", '{"chainId":9007199254740993}']
      ]
      const places = [
        "reads[0].funcParams[0][0]",
        "operations[0].funcParams[0][0][0]",
        "funcParams[0].a",
        "fields.amount[0]",
        "settings.useABI[0].inputs[0]",
        "chainId"
      ]
      for (const [index, [path, body]] of cases.entries()) {
        const answer = yield* send(url, path, {
          method: "POST",
          body,
          headers: { "content-type": "application/json", "x-api-key": key }
        })
        const { code, details } = envelope(answer)
        expect([path, answer.status, code, details]).toEqual([
          path,
          400,
          "invalid_request",
          [{ path: places[index], message: "the JSON number would lose digits: write it as a string" }]
        ])
      }
    })
  )
})

describe("routing", () => {
  it.live("an unknown path is 404 in the envelope, whatever the method", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      for (const path of ["/", "/nope", "/predict/", "//predict", "/%70redict", "/.."])
        for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]) {
          const answer = yield* send(url, path, { method })
          expect([path, method, answer.status, envelope(answer).code]).toEqual([
            path,
            method,
            404,
            "not_found"
          ])
        }
    })
  )

  it.live("a wrong method is 405 with Allow, OPTIONS included", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const allowed = new Map<string, Array<string>>()
      for (const { method, path } of endpoints) allowed.set(path, [...(allowed.get(path) ?? []), method])
      for (const [path, methods] of allowed)
        for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]) {
          if (methods.includes(method)) continue
          const answer = yield* send(url, path, { method })
          const allow = methods.includes("GET") ? [...methods, "HEAD"] : methods
          expect([path, method, answer.status, envelope(answer).code]).toEqual([
            path,
            method,
            405,
            "method_not_allowed"
          ])
          expect(answer.headers.get("allow")).toBe(allow.join(", "))
          expect(answer.headers.has("access-control-allow-origin")).toBe(false)
        }
    })
  )

  it.live("a query and a body on GET are refused, not ignored; a proxy's absolute form is understood", () =>
    Effect.gen(function* () {
      const { port, url } = yield* start()
      expect(envelope(yield* send(url, "/predict?rpc=x", { body: good })).code).toBe("unknown_field")
      expect(envelope(yield* send(url, "/getbundleraddress?chainId=1", { method: "GET" })).code).toBe(
        "unknown_field"
      )
      expect((yield* send(url, "/health/live?probe=1", { method: "GET" })).status).toBe(200)
      const withBody = yield* raw(port, [
        `GET /getbundleraddress HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`
      ])
      expect(envelope(parseRaw(withBody)).details[0]?.message).toBe("the method takes no body")
      const absolute = yield* raw(port, [
        `GET http://any.host/health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
      ])
      expect(parseRaw(absolute).text).toBe('{"status":"live"}')
    })
  )
})

describe("bodies", () => {
  it.live("another content type is refused, forms and text included", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/vnd.api+json",
        "application/json, text/plain",
        " "
      ]) {
        const answer = yield* send(url, "/predict", { headers: { "content-type": type }, body: good })
        expect([type, answer.status, envelope(answer).code]).toEqual([type, 400, "invalid_content_type"])
      }
      const none = yield* Effect.promise(() =>
        fetch(`${url}/predict`, {
          method: "POST",
          headers: { "x-api-key": key },
          body: new TextEncoder().encode(good)
        })
      )
      expect(none.status).toBe(400)
      for (const type of [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"'
      ])
        expect((yield* send(url, "/predict", { headers: { "content-type": type }, body: good })).status).toBe(
          200
        )
      const gzip = yield* send(url, "/predict", { headers: { "content-encoding": "gzip" }, body: good })
      expect(envelope(gzip)).toMatchObject({
        code: "invalid_content_type",
        details: [{ path: "Content-Encoding" }]
      })
    })
  )

  it.live("bodies are refused if they are not JSON in UTF-8", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const bytes = (...parts: ReadonlyArray<number | string>) =>
        Uint8Array.from(
          parts.flatMap((part) => (typeof part === "number" ? [part] : [...new TextEncoder().encode(part)]))
        )
      const bodies: ReadonlyArray<string | Uint8Array> = [
        "{",
        `${good}${good}`,
        `${good.slice(0, -1)},"accounts":[]}`,
        '{"__proto__":{"accounts":[]}}',
        bytes('{"a":"', 0xff, '"}'),
        bytes('{"a":1}', 0xe2, 0x82),
        bytes(0xef, 0xbb, 0xbf, good),
        bytes(0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00),
        bytes(0)
      ]
      for (const body of bodies) {
        const answer = yield* send(url, "/predict", { body })
        expect([String(body).slice(0, 30), answer.status, envelope(answer).code]).toEqual([
          String(body).slice(0, 30),
          400,
          "invalid_json"
        ])
      }
    })
  )

  it.live("a character that is split over two chunks is whole", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const text = good.replace("customer-1", "😀é")
      const bytes = new TextEncoder().encode(text)
      const parts = [...bytes].flatMap((byte) => [`1\r\n`, Uint8Array.of(byte), "\r\n"])
      const answer = parseRaw(
        yield* raw(port, [
          head("/predict", { "transfer-encoding": "chunked", connection: "close" }),
          ...parts,
          "0\r\n\r\n"
        ])
      )
      expect(JSON.parse(answer.text)[0].salt).toBe("😀é")
    })
  )

  it.live("bodies are read up to the limit and refused one byte above it, with and without a length", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const code = (init: RequestInit) =>
        Effect.map(send(url, "/predict", init), (answer) => envelope(answer).code)
      expect(yield* code({ body: padded(MiB) })).toBe("unknown_field")
      expect(yield* code({ body: padded(MiB + 1) })).toBe("body_too_large")
      expect(yield* code(stream(padded(MiB)))).toBe("unknown_field")
      expect(yield* code(stream(padded(MiB + 1)))).toBe("body_too_large")
      expect(yield* code(stream(padded(8 * MiB)))).toBe("body_too_large")
      expect(yield* code({ body: padded(8 * MiB) })).toBe("body_too_large")
    })
  )

  it.live("the limit is the operator's", () =>
    Effect.gen(function* () {
      const { url } = yield* start({ front: { maxBodyBytes: 100, maxElements: 2 } })
      expect(envelope(yield* send(url, "/predict", { body: padded(101) })).details[0]?.message).toBe(
        "expected at most 100 bytes"
      )
      expect(envelope(yield* send(url, "/predict", { body: '{"accounts":[1,2,3]}' })).details[0]).toEqual({
        path: "accounts",
        message: "expected at most 2 elements"
      })
    })
  )

  it.live("a body beyond the drain limit still gets an answer, and the connection ends", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const answer = parseRaw(
        yield* raw(port, [
          head("/predict", { "content-length": String(1024 * MiB) }),
          ...Array.from({ length: 10 }, () => new Uint8Array(MiB).fill(0x20))
        ])
      )
      expect(envelope(answer).code).toBe("body_too_large")
      expect(answer.headers.get("connection")).toBe("close")
    })
  )

  it.live("a false length has no effect", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ server: { requestTimeoutMillis: 300, headersTimeoutMillis: 300 } })
      const short = parseRaw(
        yield* raw(port, [head("/predict", { "content-length": "5", connection: "close" }), good])
      )
      expect(envelope(short).code).toBe("invalid_json")
      const long = parseRaw(yield* raw(port, [head("/predict", { "content-length": "5000" }), good]))
      expect(envelope(long).details[0]?.message).toBe("the request did not arrive in time")
    })
  )

  it.live("a refusal arrives even if the body was not read", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const body = padded(4 * MiB)
      const answer = yield* send(url, "/predict", { headers: { "x-api-key": "wrong" }, body })
      expect(envelope(answer).code).toBe("unauthorized")
      expect(envelope(yield* send(url, "/nope", { body })).code).toBe("not_found")
    })
  )
})

describe("headers", () => {
  it.live("headers prevent caching, framing and sniffing of every answer", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      for (const answer of [
        yield* send(url, "/predict", { body: good }),
        yield* send(url, "/nope"),
        yield* send(url, "/health/live", { method: "GET" }),
        yield* send(url, "/docs", { method: "GET" })
      ]) {
        expect(answer.headers.get("cache-control")).toBe("no-store")
        expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
        expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'")
        expect(answer.headers.get("content-security-policy")).toContain("frame-ancestors 'none'")
        expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/)
        expect(answer.headers.has("x-powered-by")).toBe(false)
        expect(answer.headers.has("access-control-allow-origin")).toBe(false)
      }
    })
  )
})
