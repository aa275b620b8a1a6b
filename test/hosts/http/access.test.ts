import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { Unavailable } from "../../../src/application/failures/Failure.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import { endpoints, exampleOf, posts } from "../../support/http/Contract.js"
import {
  envelope,
  handlers,
  head,
  key,
  parseRaw,
  pausedKey,
  post,
  raw,
  readOnlyKey,
  send,
  start,
  unlimited
} from "../../support/http/Service.js"

/** One request for every endpoint with a key. */
const requests: ReadonlyArray<{ readonly path: string; readonly init: RequestInit }> = [
  ...endpoints
    .filter(({ withKey }) => withKey)
    .map((endpoint) => ({
      path: exampleOf(endpoint),
      init: { method: endpoint.method, ...(endpoint.payload !== null && { body: "{}" }) }
    }))
]
const example = (name: string) => posts.find((endpoint) => endpoint.name === name)?.example

describe("access", () => {
  it.live("every endpoint refuses a key that is missing, empty, unknown, doubled or endless", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const keys = ["", " ", "unknown", `${key}x`, key.toUpperCase(), `${key}, ${key}`, "k".repeat(8_000)]
      for (const { init, path } of requests)
        for (const wrong of keys) {
          const answer = yield* send(url, path, {
            ...init,
            headers: { "x-api-key": wrong },
            ...(init.body !== undefined && { body: "not even JSON" })
          })
          expect([path, answer.status]).toEqual([path, 401])
          expect(envelope(answer)).toMatchObject({ error: "invalid API key", code: "unauthorized" })
          expect(answer.headers.get("www-authenticate")).toBe('ApiKey realm="castellan"')
          expect(answer.headers.has("ratelimit-limit")).toBe(false)
        }
      const none = yield* Effect.promise(() => fetch(`${url}/predict`, { method: "POST", body: "{}" }))
      expect(none.status).toBe(401)
    })
  )

  it.live("a paused account is refused", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const answer = yield* send(url, "/predict", { headers: { "x-api-key": pausedKey }, body: "{}" })
      expect([answer.status, envelope(answer).code]).toEqual([401, "account_paused"])
    })
  )

  it.live("a key without the scope of the endpoint is refused", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const codes: Record<string, string> = {}
      for (const { init, path } of requests) {
        const answer = yield* send(url, path, { ...init, headers: { "x-api-key": readOnlyKey } })
        if (answer.status === 401) codes[`${init.method} ${path}`] = envelope(answer).code
      }
      const refused = [
        "POST /create",
        "POST /execute",
        "POST /executeEncoded",
        "POST /addEvent",
        "POST /addError",
        "POST /sign",
        "POST /signMessage",
        "POST /unstuck",
        "POST /executePasskey",
        "POST /transactSigner",
        `DELETE ${requests.find(({ init }) => init.method === "DELETE")?.path}`,
        ...requests
          .filter(({ path }) => /^\/(?:webhooks|watches|policies|decisionHook|topups)/.test(path))
          .map(({ init, path }) => `${init.method} ${path}`)
      ]
      expect(codes).toEqual(Object.fromEntries(refused.map((path) => [path, "scope_missing"])))
    })
  )

  it.live("every authenticated answer states the account's allowance", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const answers = [
        yield* post(url, "/predict", example("predict")),
        yield* post(url, "/predict", {}),
        yield* post(url, "/read", {}),
        yield* send(url, "/check", { headers: { "content-type": "text/plain" }, body: "x" })
      ]
      expect(answers.map(({ status }) => status)).toEqual([200, 400, 400, 400])
      for (const { headers } of answers)
        expect([
          headers.get("ratelimit-limit"),
          headers.get("ratelimit-remaining"),
          headers.get("ratelimit-reset")
        ]).toEqual(["300", "299", "30"])
    })
  )

  it.live("above the limit the answer is 429 with Retry-After, and the body is not even read", () =>
    Effect.gen(function* () {
      let left = 1
      const { url } = yield* start({
        allowance: () =>
          left-- > 0 ? unlimited : { allowed: false, limit: 60, remaining: 0, resetSeconds: 17 }
      })
      expect((yield* post(url, "/predict", example("predict"))).status).toBe(200)
      const answer = yield* send(url, "/predict", { body: "{" })
      expect([answer.status, envelope(answer).code]).toEqual([429, "rate_limited"])
      expect(answer.headers.get("retry-after")).toBe("17")
      expect(answer.headers.get("ratelimit-remaining")).toBe("0")
      expect((yield* send(url, "/predict", { headers: { "x-api-key": "" } })).status).toBe(401)
    })
  )

  const idempotent = endpoints.filter((endpoint) => endpoint.idempotent)

  it.live("without free capacity a write is refused before its body is read, and reads continue", () =>
    Effect.gen(function* () {
      const asked: Array<readonly unknown[]> = []
      const { url } = yield* start({
        front: {
          room: (...question) =>
            Effect.suspend(() => {
              asked.push(question)
              return new Unavailable({
                code: "overloaded",
                message: "overloaded",
                details: [],
                retryAfterSeconds: 5
              })
            })
        }
      })
      for (const { path } of idempotent) {
        const answer = yield* send(url, path, { headers: { "idempotency-key": "k" }, body: "{" })
        expect([path, answer.status, envelope(answer).code]).toEqual([path, 503, "overloaded"])
        expect(answer.headers.get("retry-after")).toBe("5")
      }
      yield* send(url, "/execute", { body: "{" })
      expect(asked).toEqual([
        ...idempotent.map(({ path }) => ["acme", path, "k"]),
        ["acme", "/execute", null]
      ])
      expect((yield* post(url, "/predict", example("predict"))).status).toBe(200)
    })
  )

  it("endpoints that send transactions accept an idempotency key", () => {
    expect(idempotent.map(({ path }) => path)).toEqual([
      "/create",
      "/execute",
      "/executeEncoded",
      "/executePasskey",
      "/transactSigner",
      "/unstuck"
    ])
  })

  it.live("an idempotency key reaches the use case with the hash of the body's own bytes", () =>
    Effect.gen(function* () {
      const seen: Array<Caller["idempotency"]> = []
      const { url } = yield* start({
        handlers: {
          execute: (caller) => {
            seen.push(caller.idempotency)
            return handlers.execute()
          }
        }
      })
      const body = JSON.stringify(example("execute"))
      const bodies = [body, body, ` ${body}`, body.replace("customer-1", "\u{1f3f0}")]
      for (const each of bodies) {
        const answer = yield* send(url, "/execute", { headers: { "idempotency-key": "!~" }, body: each })
        expect(answer.status).toBe(200)
      }
      yield* send(url, "/execute", { body })
      expect(seen).toEqual([...bodies.map((each) => ({ key: "!~", bodyHash: Keccak.hashText(each) })), null])
    })
  )

  const longest = "k".repeat(255)
  const wrong: ReadonlyArray<readonly [string, string]> = [
    ["empty", ""],
    ["of 256 characters", `${longest}k`],
    ["with a space inside", "a b"],
    ["with a tab inside", "a\tb"],
    ["of Latin-1", "caf\u00e9"],
    ["with DEL", "a\u007f"],
    ["doubled", "a\r\nidempotency-key: b"],
    ["doubled with one value", "a\r\nIdempotency-Key: a"],
    ["with a control character", "a\u0001"]
  ]

  it.live.each(wrong)("an idempotency key that is %s is refused before the use case runs", ([, value]) =>
    Effect.gen(function* () {
      const { port } = yield* start({ handlers: { execute: () => Effect.die(new Error("called")) } })
      const body = JSON.stringify(example("execute"))
      const answer = parseRaw(
        yield* raw(port, [
          Buffer.from(
            head("/execute", {
              "idempotency-key": value,
              "content-length": String(body.length),
              connection: "close"
            }) + body,
            "latin1"
          )
        ])
      )
      expect([answer.status, envelope(answer).code]).toEqual([400, "invalid_request"])
    })
  )

  it.live("an idempotency key and metadata are taken by every endpoint that writes, and by no other", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { url } = yield* start({
        handlers: {
          execute: (caller) => {
            seen.push(caller.metadata)
            return handlers.execute()
          }
        }
      })
      const given = [
        ["Idempotency-Key", longest, expect.any(String)],
        [
          "Request-Metadata",
          '{"order":"\\u2116 4711","by":"a:b"}',
          "the endpoint takes no metadata; leave the header out"
        ]
      ] as const
      for (const endpoint of endpoints.filter(({ withKey }) => withKey))
        for (const [path, value, message] of given) {
          const answer = yield* send(url, exampleOf(endpoint), {
            method: endpoint.method,
            headers: { [path]: value },
            ...(endpoint.payload !== null && { body: JSON.stringify(endpoint.example) })
          })
          expect([endpoint.path, answer.status]).toEqual([endpoint.path, endpoint.idempotent ? 200 : 400])
          if (!endpoint.idempotent)
            expect(envelope(answer)).toMatchObject({
              code: "invalid_request",
              details: [{ path, message }]
            })
        }
      expect(seen.at(-1)).toEqual({ order: "\u2116 4711", by: "a:b" })
    })
  )

  const badMetadata: ReadonlyArray<readonly [string, string, string]> = [
    ["empty", "", "JSON object"],
    ["no JSON", "order=4711", "JSON object"],
    ["a list", '["order"]', "JSON object"],
    ["of two members of one name", '{"a":"1","a":"2"}', "JSON object"],
    ["sent twice", '{"a":"1"}, {"b":"2"}', "JSON object"],
    ["of a number", '{"order":4711}', "values of 1 to 500"],
    ["of an object", '{"order":{}}', "values of 1 to 500"],
    ["of an empty value", '{"order":""}', "values of 1 to 500"],
    ["of NUL", '{"order":"\\u0000"}', "values of 1 to 500"],
    ["of half a character", '{"order":"\\ud83c"}', "values of 1 to 500"],
    ["of a long value", `{"order":"${"x".repeat(501)}"}`, "values of 1 to 500"],
    ["of an empty key", '{"":"x"}', "keys of 1 to 40"],
    ["of a key with a colon", '{"a:b":"x"}', "keys of 1 to 40"],
    ["of a long key", `{"${"x".repeat(41)}":"x"}`, "keys of 1 to 40"],
    [
      "of 17 members",
      JSON.stringify(Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, "x"]))),
      "16 members"
    ],
    ["of 2,049 bytes", `{"a":"x"${" ".repeat(2_040)}}`, "2048 bytes"],
    ["of Latin-1", '{"order":"\u00e9"}', "\\uXXXX"]
  ]

  it.live.each(badMetadata)("metadata that is %s is refused with what to write", ([, value, expected]) =>
    Effect.gen(function* () {
      const { url } = yield* start({ handlers: { execute: () => Effect.die(new Error("called")) } })
      const answer = yield* send(url, "/execute", {
        headers: { "request-metadata": value },
        body: JSON.stringify(example("execute"))
      })
      expect([answer.status, envelope(answer).code]).toEqual([400, "invalid_request"])
      expect(envelope(answer).details).toEqual([
        { path: "Request-Metadata", message: expect.stringContaining(expected) }
      ])
    })
  )

  it.live("concurrent requests are limited, except health checks", () =>
    Effect.gen(function* () {
      const latch = yield* Latch.make(false)
      const inside = yield* Semaphore.make(2)
      yield* inside.take(2)
      const { url } = yield* start({
        front: { maxConcurrent: 2 },
        handlers: {
          execute: () => Effect.andThen(inside.release(1), Effect.andThen(latch.await, handlers.execute()))
        }
      })
      const first = yield* Effect.forkChild(post(url, "/execute", example("execute")))
      const second = yield* Effect.forkChild(post(url, "/execute", example("execute")))
      yield* inside.take(2)
      const third = yield* post(url, "/predict", example("predict"))
      expect([third.status, envelope(third).code, third.headers.get("retry-after")]).toEqual([
        503,
        "overloaded",
        "1"
      ])
      expect((yield* send(url, "/health/ready", { method: "GET" })).status).toBe(200)
      yield* latch.open
      expect((yield* Fiber.await(first))._tag).toBe("Success")
      expect((yield* Fiber.await(second))._tag).toBe("Success")
      expect((yield* post(url, "/predict", example("predict"))).status).toBe(200)
    })
  )
})
