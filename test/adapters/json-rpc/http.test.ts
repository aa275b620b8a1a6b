import type { ServerResponse } from "node:http"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { defaults } from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as Egress from "../../../src/adapters/json-rpc/transport/Egress.js"
import * as Http from "../../../src/adapters/json-rpc/transport/Http.js"
import { http } from "./support.js"

const rules = { ...defaults.egress, allowLoopback: true }
const targetOf = (url: string) => Result.getOrThrow(Egress.target(url, "caller", rules, "acme"))

describe("requests to a node that has one connection", () => {
  it.live("queued requests are not sent after their callers are interrupted", () =>
    Effect.gen(function* () {
      const first = yield* Deferred.make<ServerResponse>()
      const node = yield* http((response, _, turn) => {
        if (turn === 0) Deferred.doneUnsafe(first, Effect.succeed(response))
        else response.end("{}")
      })
      const { post } = yield* Http.make(rules, { ...defaults.http, connectionsPerHost: 1 })
      const send = (body: string) => post(targetOf(node.url), body, true)
      const under = yield* Effect.forkChild(send("under way"))
      const response = yield* Deferred.await(first)
      const waiting = yield* Effect.forkChild(send("given up"))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting)
      response.end("{}")
      yield* Fiber.join(under)
      yield* send("later")
      expect(node.seen.map(({ body }) => body)).toEqual(["under way", "later"])
    })
  )
})

describe("an answer", () => {
  const limits = {
    ...defaults.http,
    responseBytes: 2_000,
    responseValues: 100,
    callerResponseBytes: 1_000,
    callerResponseValues: 50
  }
  const answered = (body: string, by: "caller" | "operator") =>
    Effect.gen(function* () {
      const node = yield* http((response) => response.end(body))
      const { post } = yield* Http.make(rules, limits)
      const target = Result.getOrThrow(Egress.target(node.url, by, rules, by === "caller" ? "acme" : ""))
      return yield* Effect.match(post(target, "x", false), {
        onFailure: ({ reason }) => reason,
        onSuccess: ({ body }) => body.length
      })
    })

  it.live("replies of a caller's node have a lower byte limit than the operator's", () =>
    Effect.gen(function* () {
      const text = (bytes: number) => `"${"x".repeat(bytes - 2)}"`
      expect(yield* answered(text(1_000), "caller")).toBe(1_000)
      expect(yield* answered(text(1_001), "caller")).toBe("oversized")
      expect(yield* answered(text(2_000), "operator")).toBe(2_000)
      expect(yield* answered(text(2_001), "operator")).toBe("oversized")
    })
  )

  it.live("replies have a value limit, lower for a caller's node", () =>
    Effect.gen(function* () {
      const list = (values: number) => `[${Array.from({ length: values }, () => "1").join()}]`
      for (const [by, most] of [
        ["operator", 100],
        ["caller", 50]
      ] as const) {
        expect(yield* answered(list(most - 1), by)).toBe(list(most - 1).length)
        expect(yield* answered(list(most), by)).toBe("oversized")
      }
    })
  )
})
