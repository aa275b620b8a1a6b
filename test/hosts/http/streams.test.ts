import * as http from "node:http"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpEffect from "effect/http/HttpEffect"
import * as Logger from "effect/Logger"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { EventStream } from "../../../src/application/endpoints/operations/EventStream.js"
import type { RequestEvent } from "../../../src/application/ports/journal/Events.js"
import * as JsonLog from "../../../src/hosts/service/JsonLog.js"
import * as Service from "../../support/http/Service.js"
import * as Time from "../../support/Time.js"

const event = (sequence: number): RequestEvent => ({
  sequence,
  kind: "included",
  data: { n: sequence },
  at: 7_000
})
const block = (n: number, requestId: string) =>
  `id: ${n}\nevent: included\ndata: {"requestId":"${requestId}","sequence":${n},"type":"included","at":7,"atMillis":7000,"data":{"n":${n}}}\n\n`

/** Bytes from the connection as they arrive; ends with it. */
const open = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function* () {
    const bits = yield* Queue.unbounded<string>()
    const ended = yield* Deferred.make<void>()
    const answer = yield* Effect.callback<http.IncomingMessage>((resume) => {
      http.get(
        `${url}/requests/r1/events`,
        { headers: { "x-api-key": Service.key, ...headers } },
        (response) => resume(Effect.succeed(response))
      )
    })
    answer.setEncoding("utf8")
    answer.on("data", (bit: string) => Queue.offerUnsafe(bits, bit))
    answer.on("error", () => undefined)
    answer.on("close", () => Deferred.doneUnsafe(ended, Effect.void))
    let said = ""
    /** Until it was said. */
    const until = (text: string): Effect.Effect<void> =>
      Effect.suspend(() =>
        said.includes(text)
          ? Effect.void
          : Effect.flatMap(Queue.take(bits), (bit) => {
              said += bit
              return until(text)
            })
      )
    return { answer, until, ended: Deferred.await(ended), said: () => said }
  })

describe("streams of events", () => {
  it.live("events are sent as they occur, and the response ends with the last event", () =>
    Effect.gen(function* () {
      const events = yield* Queue.unbounded<RequestEvent>()
      const { url } = yield* Service.start({
        handlers: { streamEvents: () => Effect.succeed(new EventStream(Stream.fromQueue(events))) }
      })
      const { answer, ended, said, until } = yield* open(url)
      expect([answer.statusCode, answer.headers["content-type"]]).toEqual([200, "text/event-stream"])
      expect(answer.headers["content-length"]).toBeUndefined()
      yield* Queue.offer(events, event(1))
      yield* until(block(1, "r1"))
      yield* Queue.offer(events, event(2))
      yield* until(block(2, "r1"))
      yield* Queue.shutdown(events)
      yield* ended
      expect(said().match(/^id: /gm)).toHaveLength(2)
    }).pipe(Effect.scoped)
  )

  it.live("a stream resumes after the event in Last-Event-ID, and 204 marks the end", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { url } = yield* Service.start({
        handlers: {
          streamEvents: (_, request) =>
            Effect.sync(() => {
              seen.push(request)
              return new EventStream(null)
            })
        }
      })
      for (const [query, header] of [
        ["", "7"],
        ["?after=3", ""],
        ["?after=3", "7"]
      ] as const) {
        const headers = header === "" ? {} : { "last-event-id": header }
        const { status, text } = yield* Service.send(url, `/requests/r1/events${query}`, {
          method: "GET",
          headers
        })
        expect([status, text]).toEqual([204, ""])
      }
      expect(seen).toEqual(["7", "3", "7"].map((after) => ({ requestId: "r1", after })))
      const refused = yield* Service.send(url, "/requests/r1/events", {
        method: "GET",
        headers: { "last-event-id": "the last" }
      })
      expect([refused.status, Service.envelope(refused).details[0]?.path]).toEqual([400, "Last-Event-ID"])
      const asked = yield* Service.send(url, "/requests/r1/events?after=last", { method: "GET" })
      expect([asked.status, Service.envelope(asked).details[0]?.path]).toEqual([400, "after"])
    }).pipe(Effect.scoped)
  )

  it.live("streams are limited per account, and do not count as concurrent requests", () =>
    Effect.gen(function* () {
      const { url } = yield* Service.start({
        handlers: { streamEvents: () => Effect.succeed(new EventStream(Stream.never)) },
        front: { maxStreamsPerAccount: 2, maxConcurrent: 1 }
      })
      const first = yield* open(url)
      const second = yield* open(url)
      yield* first.until(": events")
      yield* second.until(": events")
      const refused = yield* Service.send(url, "/requests/r1/events", { method: "GET" })
      expect([refused.status, Service.envelope(refused).code]).toEqual([429, "rate_limited"])
      expect((yield* Service.send(url, "/requests", { method: "GET" })).status).toBe(200)
      // Another account has its own limit.
      const other = yield* open(url, { "x-api-key": Service.readOnlyKey })
      yield* other.until(": events")
      // A closed stream frees its slot.
      first.answer.destroy()
      const again: Effect.Effect<void> = Effect.suspend(() =>
        Effect.flatMap(open(url), (it) =>
          it.answer.statusCode === 200 ? Effect.void : Effect.andThen(Effect.yieldNow, again)
        )
      )
      yield* again
    }).pipe(Effect.scoped)
  )

  it.live("streams end when the service stops", () =>
    Effect.gen(function* () {
      const { front, url } = yield* Service.start({
        handlers: { streamEvents: () => Effect.succeed(new EventStream(Stream.never)) }
      })
      const { ended, until } = yield* open(url)
      yield* until(": events")
      yield* front.stop("1 hour")
      yield* ended
    }).pipe(Effect.scoped)
  )

  it.live("a stream pauses production for a client that does not read", () =>
    Effect.gen(function* () {
      let made = 0
      const text = "x".repeat(100_000)
      const endless = Stream.fromEffectRepeat(
        Effect.sync((): RequestEvent => ({ ...event(++made), data: { text } }))
      )
      const { front, url } = yield* Service.start({
        handlers: { streamEvents: () => Effect.succeed(new EventStream(endless)) }
      })
      const { answer } = yield* Effect.map(
        Effect.callback<http.IncomingMessage>((resume) => {
          http.get(`${url}/requests/r1/events`, { headers: { "x-api-key": Service.key } }, (response) =>
            resume(Effect.succeed(response.pause()))
          )
        }),
        (answer) => ({ answer })
      )
      let before = -1
      // Production stops once the connection's buffers are full.
      while (made !== before) {
        before = made
        yield* Effect.sleep(200)
      }
      expect(made).toBeLessThan(2_000)
      answer.destroy()
      yield* front.stop(0)
    }).pipe(Effect.scoped)
  )

  it.live("streams work the same through the fetch handler", () =>
    Effect.gen(function* () {
      const front = yield* Service.makeFront({
        handlers: { streamEvents: () => Effect.succeed(new EventStream(Stream.make(event(1), event(2)))) }
      })
      const ask = (method: string) => {
        const headers = { "x-api-key": Service.key }
        return Effect.promise(() =>
          HttpEffect.toWebHandler(front.app)(
            new Request("http://service/requests/r1/events", { method, headers })
          )
        )
      }
      const response = yield* ask("GET")
      expect(response.headers.get("content-type")).toBe("text/event-stream")
      expect(yield* Effect.promise(() => response.text())).toBe(
        `: events\n\n${block(1, "r1")}${block(2, "r1")}`
      )
      const head = yield* ask("HEAD")
      expect([head.status, yield* Effect.promise(() => head.text())]).toEqual([200, ""])
    })
  )

  it.live("a broken stream reports its reason only to the operator", () => {
    const lines: Array<string> = []
    const logger = Logger.layer([JsonLog.make((line) => void lines.push(line))])
    return Effect.gen(function* () {
      const handlers = {
        streamEvents: () =>
          Effect.succeed(
            new EventStream(Stream.concat(Stream.make(event(1)), Stream.die(new Error("of the store"))))
          )
      }
      const { front, url } = yield* Service.start({ handlers })
      const { text } = yield* Service.send(url, "/requests/r1/events", { method: "GET" })
      const fetched = yield* Service.ask(front, {
        target: "/requests/r1/events",
        headers: { "x-api-key": Service.key }
      })
      for (const said of [text, fetched.text]) expect(said).toBe(`: events\n\n${block(1, "r1")}`)
      expect(lines.filter((line) => line.includes("of the store"))).toHaveLength(2)
    }).pipe(Effect.scoped, Effect.provide(logger))
  })

  it.effect("idle streams carry a comment from time to time", () =>
    Effect.gen(function* () {
      const front = yield* Service.makeFront({
        handlers: { streamEvents: () => Effect.succeed(new EventStream(Stream.never)) }
      })
      const { body } = yield* Service.respond(front, {
        target: "/requests/r1/events",
        headers: { "x-api-key": Service.key }
      })
      if (body._tag !== "Stream") throw new Error("the response is not a stream")
      const text = Stream.decodeText(body.stream)
      const bits = yield* Effect.forkChild(Stream.runCollect(Stream.take(text, 3)))
      yield* Time.adjust("15 seconds")
      yield* Time.adjust("15 seconds")
      expect([...(yield* Fiber.join(bits))]).toEqual([": events\n\n", ": still here\n\n", ": still here\n\n"])
    })
  )
})
