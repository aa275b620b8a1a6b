import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpApp from "effect/http/HttpEffect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import * as Conformance from "../../support/http/Conformance.js"
import { posts } from "../../support/http/Contract.js"
import { type Answered, handlers, key, makeFront, type StartOptions } from "../../support/http/Service.js"

const predict = JSON.stringify(posts.find(({ name }) => name === "predict")?.example)

const make = (options: StartOptions = {}) =>
  Effect.map(makeFront(options), (front) => {
    const handler = HttpApp.toWebHandler(front.app)
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

describe("the front as a fetch handler", () => {
  it.live("a client that disconnects ends its read, not its write", () =>
    Effect.gen(function* () {
      const entered = yield* Semaphore.make(2)
      yield* entered.take(2)
      const latch = yield* Latch.make(false)
      const outcome = { predict: "", execute: "" }
      const note = <A>(name: "predict" | "execute", effect: Effect.Effect<A>) =>
        Effect.andThen(entered.release(1), Effect.andThen(latch.await, effect)).pipe(
          Effect.onExit((exit) =>
            Effect.andThen(
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
      yield* Effect.forkDetach(ask("/predict", { body: predict, signal }))
      yield* Effect.forkDetach(ask("/execute", { body: execute, signal }))
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
