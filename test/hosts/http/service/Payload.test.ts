import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as Body from "../../../../src/hosts/http/message/Body.js"
import * as Payload from "../../../../src/hosts/http/service/Payload.js"
import * as Time from "../../../support/Time.js"

const read = (request: HttpServerRequest.HttpServerRequest) =>
  Payload.bytes(request, { maxBytes: 100, drainBytes: 200 })

const post = (body: NonNullable<RequestInit["body"]> | null) =>
  HttpServerRequest.fromWeb(
    new Request("http://x/predict", { method: "POST", body, duplex: "half" } as RequestInit)
  )

const stream = (pull: (controller: ReadableStreamDefaultController<Uint8Array>) => void, cancel = () => {}) =>
  new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 })

describe("the body of a fetch request", () => {
  it.effect("a body is read to its end", () =>
    Effect.gen(function* () {
      expect(yield* read(post("a body"))).toEqual(new TextEncoder().encode("a body"))
    })
  )

  it.effect("a request without a body is read immediately", () =>
    Effect.gen(function* () {
      expect(yield* read(post(null))).toEqual(new Uint8Array())
    })
  )

  it.effect("a body longer than the limit is released", () =>
    Effect.gen(function* () {
      let freed = false
      const body = stream(
        (controller) => controller.enqueue(new Uint8Array(64)),
        () => {
          freed = true
        }
      )
      expect(yield* read(post(body))).toBeNull()
      expect(freed).toBe(true)
    })
  )

  it.effect("a body that is a minute late is broken", () =>
    Effect.gen(function* () {
      let begun: () => void = () => {}
      const reading = new Promise<void>((resolve) => {
        begun = resolve
      })
      const fiber = yield* Effect.forkChild(Effect.flip(read(post(stream(() => begun())))))
      yield* Effect.promise(() => reading)
      yield* Time.adjust("59 seconds")
      expect(yield* Effect.sync(() => Option.fromUndefinedOr(fiber.pollUnsafe()))).toMatchObject({
        _tag: "None"
      })
      yield* Time.adjust("1 second")
      expect(yield* Fiber.join(fiber)).toBeInstanceOf(Body.Broken)
    })
  )

  it.effect("a body that another reader has consumed is broken", () =>
    Effect.gen(function* () {
      const request = new Request("http://x/predict", { method: "POST", body: "a body" })
      yield* Effect.promise(() => request.text())
      expect(yield* Effect.flip(read(HttpServerRequest.fromWeb(request)))).toBeInstanceOf(Body.Broken)
    })
  )
})
