import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Body from "../../../../src/hosts/http/message/Body.js"
import * as FetchRequest from "../../../../src/hosts/http/service/FetchRequest.js"
import * as Time from "../../../support/Time.js"

const collector = () => new Body.Collector({ maxBytes: 100, drainBytes: 200 })

const post = (body: NonNullable<RequestInit["body"]> | null) =>
  FetchRequest.incoming(
    new Request("http://x/predict", { method: "POST", body, duplex: "half" } as RequestInit),
    {
      target: "/predict",
      remoteAddress: null
    }
  )

const stream = (pull: (controller: ReadableStreamDefaultController<Uint8Array>) => void, cancel = () => {}) =>
  new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 })

describe("FetchRequest", () => {
  it.effect("reads a body to its end", () =>
    Effect.gen(function* () {
      const read = collector()
      yield* post("a body").readBody(read)
      expect(read.text()).toEqual(Result.succeed("a body"))
    })
  )

  it.effect("has a request without a body done at once", () =>
    Effect.gen(function* () {
      const read = collector()
      const incoming = post(null)
      yield* incoming.readBody(read)
      expect([read.empty, incoming.headers["transfer-encoding"]]).toEqual([true, undefined])
    })
  )

  it.effect("frees a body that is longer than it has to be read", () =>
    Effect.gen(function* () {
      let freed = false
      const body = stream(
        (controller) => controller.enqueue(new Uint8Array(64)),
        () => {
          freed = true
        }
      )
      const read = collector()
      yield* post(body).readBody(read)
      expect([freed, Result.isFailure(read.text())]).toEqual([true, true])
    })
  )

  it.effect("gives up a body that does not come in time", () =>
    Effect.gen(function* () {
      let begun: () => void = () => {}
      const reading = new Promise<void>((resolve) => {
        begun = resolve
      })
      const fiber = yield* Effect.forkChild(Effect.flip(post(stream(() => begun())).readBody(collector())))
      yield* Effect.promise(() => reading)
      yield* Time.adjust("59 seconds")
      expect(yield* Effect.sync(() => Option.fromUndefinedOr(fiber.pollUnsafe()))).toMatchObject({
        _tag: "None"
      })
      yield* Time.adjust("1 second")
      expect(yield* Fiber.join(fiber)).toBeInstanceOf(Body.Broken)
    })
  )

  it.effect("takes a body that somebody else has read for a broken one", () =>
    Effect.gen(function* () {
      const request = new Request("http://x/predict", { method: "POST", body: "a body" })
      yield* Effect.promise(() => request.text())
      const incoming = FetchRequest.incoming(request, { target: "/predict", remoteAddress: null })
      expect(yield* Effect.flip(incoming.readBody(collector()))).toBeInstanceOf(Body.Broken)
    })
  )
})
