import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as Schema from "effect/Schema"
import { api } from "../../../src/hosts/http/contract/Api.js"
import { endpoints, exampleOf, posts } from "../../support/http/Contract.js"
import { envelope, handlers, key, parseRaw, post, raw, send, start } from "../../support/http/Service.js"

const strict = { onExcessProperty: "error" } as const

describe("the endpoints", () => {
  it("the endpoints are those of the interface that are built", () => {
    expect(endpoints.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /predict",
      "POST /check",
      "POST /create",
      "POST /execute",
      "POST /estimateGas",
      "POST /executeEncoded",
      "POST /passkeyHash",
      "POST /executePasskey",
      "POST /transactSigner",
      "POST /unstuck",
      "GET /requests",
      "GET /requests/:requestId",
      "DELETE /requests/:requestId",
      "GET /requests/:requestId/events",
      "POST /read",
      "POST /receipt",
      "POST /filterEvent",
      "POST /getEvents",
      "POST /addEvent",
      "POST /addError",
      "POST /sign",
      "POST /signMessage",
      "POST /getSigner",
      "POST /getbundleraddress",
      "GET /getbundleraddress",
      "GET /networks",
      "POST /webhooks",
      "GET /webhooks",
      "GET /webhooks/:webhookId",
      "PATCH /webhooks/:webhookId",
      "DELETE /webhooks/:webhookId",
      "POST /webhooks/:webhookId/rotate",
      "GET /webhooks/:webhookId/dead",
      "POST /webhooks/:webhookId/redeliver",
      "POST /watches",
      "GET /watches",
      "GET /watches/:watchId",
      "PATCH /watches/:watchId",
      "DELETE /watches/:watchId",
      "GET /policies",
      "PUT /policies/:subject",
      "GET /policies/:subject",
      "DELETE /policies/:subject",
      "GET /policies/:subject/usage",
      "POST /policies/evaluate",
      "PUT /decisionHook",
      "GET /decisionHook",
      "DELETE /decisionHook",
      "PUT /topups/:chainId",
      "GET /topups/:chainId",
      "GET /health/live",
      "GET /health/ready",
      "GET /openapi.json",
      "GET /docs"
    ])
  })

  it.each(posts)("the example of $path is a request of its schema", ({ example, payload }) => {
    expect(() => payload && Schema.decodeUnknownSync(payload, strict)(example)).not.toThrow()
  })

  it.live("endpoints return success in the shape of the contract", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      for (const endpoint of endpoints.filter(({ name, withKey }) => withKey && name !== "streamEvents")) {
        const { example, method, path, payload, success } = endpoint
        const answer = yield* send(url, exampleOf(endpoint), {
          method,
          ...(payload !== null && { body: JSON.stringify(example) })
        })
        expect([path, answer.status, answer.text]).toEqual([path, 200, answer.text])
        expect(answer.headers.get("content-type")).toBe("application/json")
        expect(() => Schema.decodeUnknownSync(success, strict)(JSON.parse(answer.text))).not.toThrow()
      }
    })
  )

  it.live("endpoints pass the decoded request, the principal and a fresh request id to the use case", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { url } = yield* start({
        handlers: {
          execute: (caller, request) => {
            seen.push([caller.principal.accountId, caller.requestId, request.operations[0]?.value])
            return handlers.execute()
          }
        }
      })
      const { example } = posts.find(({ name }) => name === "execute") ?? {}
      const request = {
        ...Object(example),
        operations: [{ ...Object(example).operations[0], value: "0x10" }]
      }
      const first = yield* post(url, "/execute", request)
      const second = yield* post(url, "/execute", request)
      expect(seen).toHaveLength(2)
      expect(seen[0]).toEqual(["acme", first.headers.get("x-request-id"), 16n])
      expect(seen[1]).toEqual(["acme", second.headers.get("x-request-id"), 16n])
      expect(first.headers.get("x-request-id")).not.toBe(second.headers.get("x-request-id"))
    })
  )

  it.live("/getbundleraddress takes GET, POST without any body, and POST with one", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const path = "/getbundleraddress"
      const answers = [
        yield* send(url, path, { method: "GET" }),
        yield* send(url, path),
        yield* send(url, path, { body: "" }),
        yield* send(url, path, { body: "{}" }),
        yield* send(url, path, { body: '{"chainId":"137"}' })
      ]
      for (const { status, text } of answers)
        expect([status, JSON.parse(text)]).toEqual([200, { address: expect.stringMatching(/^0x/) }])
      const wrong = envelope(yield* send(url, path, { body: '{"chainid":1}' }))
      expect(wrong.details[0]).toMatchObject({ path: "chainid", suggestion: "chainId" })
    })
  )

  const ids = [
    "x",
    "a.b",
    "~",
    "%41",
    "a%2Fb",
    "a%2fb%3Fc",
    "%25",
    "%00",
    "%F0%9F%92%A9",
    ":requestId",
    "..%2f",
    "a+b"
  ]

  it.live.each(ids)("a parameter of a path is percent-decoded once: %s", (id) =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const answer = yield* send(url, `/requests/${id}`, { method: "GET" })
      expect([answer.status, JSON.parse(answer.text).requestId]).toEqual([200, decodeURIComponent(id)])
    })
  )

  it.live("a path with a missing, malformed or extra parameter is unknown", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const wrong = ["/", "/%", "/%zz", "/%c3", "/%ff", "/%ed%a0%80", "/x/", "/x/y", "//x", "s/x"]
      for (const rest of wrong) {
        const request = `GET /requests${rest} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\nconnection: close\r\n\r\n`
        const answer = parseRaw(yield* raw(port, [request]))
        expect([rest, answer.status, envelope(answer).code]).toEqual([rest, 404, "not_found"])
      }
    })
  )

  it.live("a path with a parameter accepts only GET, HEAD and DELETE, without a body", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const head = yield* send(url, "/requests/x", { method: "HEAD" })
      expect([head.status, head.text]).toEqual([200, ""])
      const get = yield* send(url, "/requests/x", { method: "GET" })
      expect(head.headers.get("content-length")).toBe(String(get.text.length))
      const posted = yield* send(url, "/requests/x", { body: "{}" })
      expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, DELETE, HEAD"])
      const query = envelope(yield* send(url, "/requests/x?wait=1", { method: "DELETE" }))
      expect(query).toMatchObject({ code: "unknown_field" })
      const keyed = yield* send(url, "/requests/x", { method: "GET", headers: { "idempotency-key": "k" } })
      expect(envelope(keyed)).toMatchObject({
        code: "invalid_request",
        details: [{ path: "Idempotency-Key" }]
      })
    })
  )

  it.live("health and documentation need no key and support HEAD", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      for (const { path, success } of endpoints.filter(({ withKey }) => !withKey)) {
        const get = yield* Effect.promise(() => fetch(`${url}${path}`))
        const text = yield* Effect.promise(() => get.text())
        expect([path, get.status]).toEqual([path, 200])
        const json = get.headers.get("content-type") === "application/json"
        expect(() => Schema.decodeUnknownSync(success)(json ? JSON.parse(text) : text)).not.toThrow()
        const head = yield* Effect.promise(() => fetch(`${url}${path}`, { method: "HEAD" }))
        expect([head.status, head.headers.get("content-length")]).toEqual([
          200,
          String(new TextEncoder().encode(text).byteLength)
        ])
      }
    })
  )

  it.live("endpoints work with the client derived from the contract", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const client = yield* HttpApiClient.make(api, {
        baseUrl: url,
        transformClient: HttpClient.mapRequest(HttpClientRequest.setHeader("x-api-key", key))
      })
      const address = yield* client.signing.getBundlerAddressByGet()
      expect(address).toEqual({ address: expect.stringMatching(/^0x/) })
      const receipts = yield* client.chain.receipt({ payload: { txHashes: [], rpc: "http://x" } })
      expect(receipts.requestStatus).toBe(202)
      const request = yield* client.operations.getRequest({ params: { requestId: "r-1" }, query: {} })
      expect(request.requestId).toBe("r-1")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
