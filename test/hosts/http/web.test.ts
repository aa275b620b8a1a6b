import * as HttpApp from "@effect/platform/HttpApp"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as App from "../../../src/hosts/http/service/App.js"
import * as Conformance from "../../support/http/Conformance.js"
import { posts } from "../../support/http/Contract.js"
import {
  type Answered,
  envelope,
  handlers,
  key,
  makeFront,
  type StartOptions
} from "../../support/http/Service.js"

const MiB = 1024 * 1024
const predict = JSON.stringify(posts.find(({ name }) => name === "predict")?.example)

const make = (options: StartOptions = {}) =>
  Effect.map(makeFront(options), (front) => {
    const handler = HttpApp.toWebHandler(App.fromFront(front))
    return (path: string, init: RequestInit = {}): Effect.Effect<Answered> =>
      Effect.promise(async () => {
        const headers = { "content-type": "application/json", "x-api-key": key }
        const request = new Request(`http://x${path}`, { method: "POST", headers, ...init })
        const response = await handler(request)
        const answer = { status: response.status, headers: response.headers, text: await response.text() }
        const sent = typeof init.body === "string" ? init.body : null
        await Conformance.note({ method: request.method, target: path, sent, ...answer })
        return answer
      })
  })

const endless = () => {
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      sent += MiB
      controller.enqueue(new Uint8Array(MiB).fill(0x20))
    }
  })
  return { init: { body, duplex: "half" } as RequestInit, sent: () => sent }
}

describe("the front as a fetch handler", () => {
  it.live("answers as it does on node", () =>
    Effect.gen(function* () {
      const ask = yield* make()
      const answer = yield* ask("/predict", { body: predict })
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"])
      expect(answer.headers.get("ratelimit-limit")).toBe("300")
      expect(envelope(yield* ask("/nope")).code).toBe("not_found")
      expect(envelope(yield* ask("/predict", { headers: {} })).code).toBe("unauthorized")
      expect(envelope(yield* ask("/predict")).code).toBe("invalid_json")
      expect(envelope(yield* ask("/predict", { body: "{" })).code).toBe("invalid_json")
      expect((yield* ask("/getbundleraddress")).status).toBe(200)
      expect((yield* ask("/docs", { method: "GET" })).headers.get("content-type")).toBe(
        "text/html; charset=utf-8"
      )
      const head = yield* ask("/health/live", { method: "HEAD" })
      expect([head.status, head.text]).toEqual([200, ""])
    })
  )

  it.live("holds the body limit, and stops reading a body without an end", () =>
    Effect.gen(function* () {
      const ask = yield* make()
      const padded = (bytes: number) => ({ body: `{"padding":"${"x".repeat(bytes - 14)}"}` })
      expect(envelope(yield* ask("/predict", padded(MiB))).code).toBe("unknown_field")
      expect(envelope(yield* ask("/predict", padded(MiB + 1))).code).toBe("body_too_large")
      const { init, sent } = endless()
      expect(envelope(yield* ask("/predict", init)).code).toBe("body_too_large")
      expect(sent()).toBeLessThan(16 * MiB)
    })
  )

  it.live("answers a crash in the envelope", () =>
    Effect.gen(function* () {
      const ask = yield* make({ handlers: { predict: () => Effect.dieMessage("crash") } })
      expect(envelope(yield* ask("/predict", { body: predict })).code).toBe("internal_error")
    })
  )

  it.live("a client that goes away ends a read, and does not end a write", () =>
    Effect.gen(function* () {
      const entered = yield* Effect.makeSemaphore(2)
      yield* entered.take(2)
      const latch = yield* Effect.makeLatch(false)
      const outcome = { predict: "", execute: "" }
      const note = <A>(name: "predict" | "execute", effect: Effect.Effect<A>) =>
        Effect.zipRight(entered.release(1), Effect.zipRight(latch.await, effect)).pipe(
          Effect.onExit((exit) =>
            Effect.zipRight(
              Effect.sync(() => {
                outcome[name] = exit._tag
              }),
              entered.release(1)
            )
          )
        )
      const ask = yield* make({
        handlers: {
          predict: () => note("predict", Effect.succeed([])),
          execute: () => note("execute", handlers.execute())
        }
      })
      const controller = new AbortController()
      const { signal } = controller
      const execute = JSON.stringify(posts.find(({ name }) => name === "execute")?.example)
      yield* Effect.forkDaemon(ask("/predict", { body: predict, signal }))
      yield* Effect.forkDaemon(ask("/execute", { body: execute, signal }))
      yield* entered.take(2)
      controller.abort()
      yield* entered.take(1)
      expect(outcome).toEqual({ predict: "Failure", execute: "" })
      yield* latch.open
      yield* entered.take(1)
      expect(outcome).toEqual({ predict: "Failure", execute: "Success" })
    })
  )
})
