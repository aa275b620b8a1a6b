import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { later } from "../../../src/hosts/http/Later.js"
import { endpoints, posts } from "../../support/http/Contract.js"
import {
  envelope,
  handlers,
  key,
  pausedKey,
  post,
  readOnlyKey,
  send,
  start,
  unlimited
} from "../../support/http/Service.js"

const paths = [...endpoints.filter(({ withKey }) => withKey).map(({ path }) => path), ...Object.keys(later)]
const example = (name: string) => posts.find((endpoint) => endpoint.name === name)?.example

describe("access", () => {
  it.scopedLive("every endpoint refuses a key that is missing, empty, unknown, doubled or endless", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const keys = ["", " ", "unknown", `${key}x`, key.toUpperCase(), `${key}, ${key}`, "k".repeat(8_000)]
      for (const path of paths)
        for (const wrong of keys) {
          const answer = yield* send(url, path, { headers: { "x-api-key": wrong }, body: "not even JSON" })
          expect([path, answer.status]).toEqual([path, 401])
          expect(envelope(answer)).toMatchObject({ error: "invalid API key", code: "unauthorized" })
          expect(answer.headers.get("www-authenticate")).toBe('ApiKey realm="castellan"')
          expect(answer.headers.has("ratelimit-limit")).toBe(false)
        }
      const none = yield* Effect.promise(() => fetch(`${url}/predict`, { method: "POST", body: "{}" }))
      expect(none.status).toBe(401)
    })
  )

  it.scopedLive("a paused account is refused", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const answer = yield* send(url, "/predict", { headers: { "x-api-key": pausedKey }, body: "{}" })
      expect([answer.status, envelope(answer).code]).toEqual([401, "account_paused"])
    })
  )

  it.scopedLive("a key without the scope of the endpoint is refused", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const codes: Record<string, string> = {}
      for (const path of paths) {
        const answer = yield* send(url, path, { headers: { "x-api-key": readOnlyKey }, body: "{}" })
        if (answer.status === 401) codes[path] = envelope(answer).code
      }
      const refused = [
        "/create",
        "/execute",
        "/executeEncoded",
        "/addEvent",
        "/addError",
        "/sign",
        "/unstuck",
        "/executePasskey",
        "/transactSigner"
      ]
      expect(codes).toEqual(Object.fromEntries(refused.map((path) => [path, "scope_missing"])))
    })
  )

  it.scopedLive("every authenticated answer tells the account's allowance", () =>
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

  it.scopedLive("above the limit the answer is 429 with Retry-After, and the body is not even read", () =>
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

  it.scopedLive("Idempotency-Key is refused as long as it would mean nothing", () =>
    Effect.gen(function* () {
      const { url } = yield* start({ handlers: { execute: () => Effect.dieMessage("called") } })
      for (const value of ["abc", ""]) {
        const answer = yield* send(url, "/execute", {
          headers: { "idempotency-key": value },
          body: JSON.stringify(example("execute"))
        })
        expect(envelope(answer)).toMatchObject({
          error: "Idempotency-Key is not available yet",
          code: "not_available_yet",
          details: [{ path: "Idempotency-Key" }]
        })
      }
    })
  )

  it.scopedLive("at most so many requests are under way at once; health is not among them", () =>
    Effect.gen(function* () {
      const latch = yield* Effect.makeLatch(false)
      const inside = yield* Effect.makeSemaphore(2)
      yield* inside.take(2)
      const { url } = yield* start({
        front: { maxConcurrent: 2 },
        handlers: {
          execute: () => Effect.zipRight(inside.release(1), Effect.zipRight(latch.await, handlers.execute()))
        }
      })
      const first = yield* Effect.fork(post(url, "/execute", example("execute")))
      const second = yield* Effect.fork(post(url, "/execute", example("execute")))
      yield* inside.take(2)
      const third = yield* post(url, "/predict", example("predict"))
      expect([third.status, envelope(third).code, third.headers.get("retry-after")]).toEqual([
        503,
        "overloaded",
        "1"
      ])
      expect((yield* send(url, "/health/ready", { method: "GET" })).status).toBe(200)
      yield* latch.open
      expect((yield* first.await)._tag).toBe("Success")
      expect((yield* second.await)._tag).toBe("Success")
      expect((yield* post(url, "/predict", example("predict"))).status).toBe(200)
    })
  )
})
