import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { once } from "node:events"
import type { Server as HttpServer } from "node:http"
import { connect, createServer } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import * as Server from "../../../../src/hosts/http/server/Server.js"
import * as JsonLog from "../../../../src/hosts/service/JsonLog.js"
import { posts } from "../../../support/http/Contract.js"
import {
  ask,
  envelope,
  handlers,
  head,
  key,
  makeFront,
  parseRaw,
  post,
  raw,
  type StartOptions,
  send,
  start
} from "../../../support/http/Service.js"

const example = (name: string) => posts.find((endpoint) => endpoint.name === name)?.example
const predict = JSON.stringify(example("predict"))

/** A use case that signals its start and waits for its release. */
const blocked = Effect.gen(function* () {
  const entered = yield* Deferred.make<void>()
  const release = yield* Deferred.make<void>()
  const ended = yield* Deferred.make<string>()
  const around = <A>(result: Effect.Effect<A>): Effect.Effect<A> =>
    Deferred.succeed(entered, undefined).pipe(
      Effect.andThen(Deferred.await(release)),
      Effect.andThen(result),
      Effect.onExit((exit) => Deferred.succeed(ended, exit._tag))
    )
  return {
    entered: Deferred.await(entered),
    release: Deferred.succeed(release, undefined),
    ended: Deferred.await(ended),
    around
  }
})

/** A server whose scope the test closes. */
const stoppable = (options: StartOptions = {}) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
    const started = yield* Scope.provide(start(options), scope)
    return { ...started, stop: Scope.close(scope, Exit.void) }
  })

/** Resolves once the server refuses new requests. */
const stopping = (front: Effect.Success<ReturnType<typeof makeFront>>) =>
  Effect.repeat(ask(front, { target: "/health/ready" }), { until: ({ status }) => status === 503 })

describe("connections without a valid request", () => {
  const malformed: ReadonlyArray<readonly [string, ReadonlyArray<string>, string]> = [
    [
      "no HTTP at all",
      ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
      "the request is not well-formed HTTP"
    ],
    [
      "a chunk of no size",
      [head("/predict", { "transfer-encoding": "chunked" }), "zz\r\n{}\r\n0\r\n\r\n"],
      "the request is not well-formed HTTP"
    ],
    [
      "a length and chunks",
      [head("/predict", { "content-length": "2", "transfer-encoding": "chunked" }), "{}"],
      "the request is not well-formed HTTP"
    ],
    [
      "two lengths",
      [head("/predict", { "content-length": "2\r\ncontent-length: 3" }), "{}"],
      "the request is not well-formed HTTP"
    ],
    [
      "a negative length",
      [head("/predict", { "content-length": "-1" })],
      "the request is not well-formed HTTP"
    ],
    [
      "headers without an end",
      [head("/predict", { "x-long": "x".repeat(64 * 1024) })],
      "the headers are too large"
    ],
    [
      "a bare line feed in a header",
      [head("/predict", { "x-odd": "a\nb" })],
      "the request is not well-formed HTTP"
    ]
  ]

  it.live.each(malformed)("is answered in the envelope: %s", ([, parts, message]) =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const answer = parseRaw(yield* raw(port, parts))
      expect(answer.headers.get("connection")).toBe("close")
      expect(envelope(answer)).toMatchObject({ code: "invalid_request", details: [{ message }] })
    })
  )

  it.live("a request without a host and a tunnel get an envelope", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const none = parseRaw(yield* raw(port, ["GET /health/live HTTP/1.1\r\nconnection: close\r\n\r\n"]))
      expect(envelope(none).details).toEqual([{ path: "Host", message: "the header is required" }])
      const tunnel = parseRaw(yield* raw(port, ["CONNECT a.host:443 HTTP/1.1\r\nhost: a.host\r\n\r\n"]))
      expect(envelope(tunnel).code).toBe("method_not_allowed")
    })
  )

  it.live("a malformed request does not replace the answer to the request before it", () =>
    Effect.gen(function* () {
      const { ended, entered, release, around } = yield* blocked
      const { port } = yield* start({ handlers: { execute: () => around(handlers.execute()) } })
      const body = JSON.stringify(example("execute"))
      const text = yield* Effect.forkChild(
        raw(port, [head("/execute", { "content-length": String(body.length) }), body, "garbage\r\n\r\n"])
      )
      yield* entered
      yield* release
      expect(yield* ended).toBe("Success")
      const answer = parseRaw(yield* Fiber.join(text))
      expect([answer.status, JSON.parse(answer.text).status]).toEqual([200, 1])
    })
  )
})

describe("a slow client", () => {
  const patience = { headersTimeoutMillis: 200, requestTimeoutMillis: 200 }

  it.live.each([
    ["its headers", ["POST /predict HTTP/1.1\r\nhost: x\r\nx-a: "]],
    ["its body", [head("/predict", { "content-length": "100" }), "{"]],
    ["its chunks", [head("/predict", { "transfer-encoding": "chunked" }), "1\r\n{\r\n"]]
  ] as const)("a request that never ends %s is cut off with 503, while others are served", ([, parts]) =>
    Effect.gen(function* () {
      const { port, url } = yield* start({ server: patience })
      const slow = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 20 }, () => raw(port, parts)),
          { concurrency: 20 }
        )
      )
      expect((yield* send(url, "/predict", { body: predict })).status).toBe(200)
      for (const text of yield* Fiber.join(slow))
        expect(parseRaw(text)).toMatchObject({
          status: 503,
          text: expect.stringContaining("did not arrive in time")
        })
    })
  )

  it.live("a client is cut off if it still sends after its answer", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const text = yield* raw(port, [head("/nope", { "content-length": "1000000" }), "{"])
      expect(envelope(parseRaw(text)).code).toBe("not_found")
    })
  )

  it.live("a client is cut off if it does not read its answer, even with pipelined requests", () =>
    Effect.gen(function* () {
      const { around, entered } = yield* blocked
      const { port } = yield* start({
        server: { answerMillis: 100, answerBytesPerSecond: 100_000_000 },
        handlers: { execute: () => around(handlers.execute()) }
      })
      const bundle = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: x\r\n\r\n"
      // Exceeds the buffers of a connection.
      const socket = connect(port, "127.0.0.1")
        .on("error", () => {})
        .pause()
      socket.write(bundle.repeat(16))
      yield* Effect.sleep("1 second")
      let read = 0
      socket.on("data", (part) => {
        read += part.length
      })
      socket.resume()
      yield* Effect.promise(() => once(socket, "close"))
      expect(read).toBeLessThan(16 * 1_700_000)

      // Waiting behind a slow answer is not slow reading.
      const patient = connect(port, "127.0.0.1").on("error", () => {})
      const body = JSON.stringify(example("execute"))
      patient.write(`${head("/execute", { "content-length": String(body.length) })}${body}${bundle}`)
      yield* entered
      yield* Effect.sleep("400 millis")
      expect(patient.destroyed).toBe(false)
      patient.destroy()
    })
  )

  it.live("a client is timed only while sending, not while its request runs", () =>
    Effect.gen(function* () {
      const { around, entered, release } = yield* blocked
      const { port, url } = yield* start({
        server: patience,
        handlers: { execute: () => around(handlers.execute()) }
      })
      const long = yield* Effect.forkChild(post(url, "/execute", example("execute")))
      yield* entered
      // This client starts later; when it times out, the first client's time is over too.
      yield* raw(port, [head("/predict", { "content-length": "100" }), "{"])
      yield* release
      expect((yield* Fiber.join(long)).status).toBe(200)
    })
  )
})

describe("connections", () => {
  it.live("connections are kept between requests, and pipelined requests are answered in order", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const length = { "content-length": String(predict.length) }
      const text = yield* raw(port, [
        head("/predict", length) + predict + head("/nope", { "content-length": "0" }),
        `${head("/predict", { ...length, connection: "close" })}${predict}`
      ])
      expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
        "200",
        "404",
        "200"
      ])
    })
  )

  it.live("Expect: 100-continue and unknown expectations get an answer", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      for (const expectation of ["100-continue", "miracles"]) {
        const text = yield* raw(port, [
          head("/predict", {
            "content-length": String(predict.length),
            connection: "close",
            expect: expectation
          }),
          predict
        ])
        expect([expectation, parseRaw(text).status]).toEqual([expectation, 200])
      }
    })
  )

  it.live("a client that disconnects ends its read, not its write", () =>
    Effect.gen(function* () {
      const read = yield* blocked
      const write = yield* blocked
      const { url } = yield* start({
        handlers: {
          predict: () => read.around(Effect.succeed([])),
          execute: () => write.around(handlers.execute())
        }
      })
      const controller = new AbortController()
      const ask = (path: string, body: unknown) =>
        Effect.promise(() =>
          fetch(`${url}${path}`, {
            method: "POST",
            headers: { "content-type": "application/json", "x-api-key": key },
            body: JSON.stringify(body),
            signal: controller.signal
          }).then(
            () => "answered",
            () => "aborted"
          )
        )
      const clients = yield* Effect.forkChild(
        Effect.all([ask("/predict", example("predict")), ask("/execute", example("execute"))], {
          concurrency: 2
        })
      )
      yield* Effect.all([read.entered, write.entered])
      controller.abort()
      expect(yield* Fiber.join(clients)).toEqual(["aborted", "aborted"])
      expect(yield* read.ended).toBe("Failure")
      yield* write.release
      expect(yield* write.ended).toBe("Success")
      expect((yield* send(url, "/health/live", { method: "GET" })).status).toBe(200)
    })
  )

  it.live("a client that disconnects while sending leaves nothing behind", () =>
    Effect.gen(function* () {
      const { port, url } = yield* start({ front: { maxConcurrent: 1 } })
      const half = yield* Effect.forkChild(raw(port, [head("/predict", { "content-length": "100" }), "{"]))
      yield* Effect.repeat(send(url, "/predict", { body: predict }), {
        until: ({ status }) => status === 503
      })
      yield* Fiber.interrupt(half)
      const after = yield* Effect.repeat(send(url, "/predict", { body: predict }), {
        until: ({ status }) => status === 200
      })
      expect(after.status).toBe(200)
    })
  )
})

describe("stopping", () => {
  it.live("stopping lets running requests finish, refuses new ones and frees the port", () =>
    Effect.gen(function* () {
      const write = yield* blocked
      const { front, port, stop, url } = yield* stoppable({
        handlers: { execute: () => write.around(handlers.execute()) }
      })
      const under = yield* Effect.forkChild(post(url, "/execute", example("execute")))
      yield* write.entered
      // An existing connection: the server accepts no new one.
      const kept = yield* Effect.forkChild(
        raw(port, [
          head("/health/live", {}).replace("POST", "GET"),
          head("/predict", { "content-length": String(predict.length) }).slice(0, 10)
        ])
      )
      const stopped = yield* Effect.forkChild(stop)
      yield* stopping(front)
      const refused = yield* ask(front, {
        method: "POST",
        target: "/predict",
        headers: { "x-api-key": key }
      })
      expect([refused.status, envelope(refused).code, refused.headers.get("retry-after")]).toEqual([
        503,
        "shutting_down",
        "1"
      ])
      const fresh = yield* Effect.promise(() =>
        fetch(`${url}/health/live`).then(
          () => "accepted",
          () => "refused"
        )
      )
      expect(fresh).toBe("refused")
      yield* write.release
      const answer = yield* Fiber.join(under)
      expect([answer.status, answer.headers.get("connection")]).toEqual([200, "close"])
      yield* Fiber.join(stopped)
      yield* Fiber.join(kept)
      const again = yield* start({ server: { port } })
      expect(again.port).toBe(port)
    })
  )

  it.live("stopping answers 503 to requests still running after the drain time, read or write", () =>
    Effect.gen(function* () {
      const write = yield* blocked
      const read = yield* blocked
      const { port, stop, url } = yield* stoppable({
        server: { drainMillis: 100 },
        handlers: {
          execute: () => write.around(handlers.execute()),
          predict: () => read.around(Effect.succeed([]))
        }
      })
      const answers = yield* Effect.forkChild(
        Effect.all([post(url, "/execute", example("execute")), post(url, "/predict", example("predict"))], {
          concurrency: 2
        })
      )
      const reading = yield* Effect.forkChild(raw(port, [head("/check", { "content-length": "100" }), "{"]))
      yield* Effect.all([write.entered, read.entered])
      yield* stop
      for (const answer of [...(yield* Fiber.join(answers)), parseRaw(yield* Fiber.join(reading))]) {
        expect([answer.status, envelope(answer).error]).toEqual([503, "shutting down"])
        expect(answer.headers.get("retry-after")).toBe("1")
      }
      expect([yield* write.ended, yield* read.ended]).toEqual(["Failure", "Failure"])
    })
  )

  it.live(
    "does not wait for ever for a use case that heeds no interruption, nor for a client that reads nothing",
    () =>
      Effect.gen(function* () {
        const { entered, around } = yield* blocked
        const { stop, url } = yield* stoppable({
          server: { drainMillis: 50 },
          handlers: { execute: () => Effect.uninterruptible(around(handlers.execute())) }
        })
        const stuck = yield* Effect.forkChild(
          Effect.promise(() =>
            fetch(`${url}/execute`, {
              method: "POST",
              headers: { "content-type": "application/json", "x-api-key": key },
              body: JSON.stringify(example("execute"))
            }).then(
              () => "answered",
              () => "cut off"
            )
          )
        )
        yield* entered
        yield* stop
        expect(yield* Fiber.join(stuck)).toBe("cut off")
      })
  )

  it.live("an idle server stops immediately despite open connections", () =>
    Effect.gen(function* () {
      const { stop, url } = yield* stoppable()
      expect((yield* send(url, "/predict", { body: predict })).status).toBe(200)
      const outcome = yield* Effect.timeoutOption(stop, "2 seconds")
      expect(outcome._tag).toBe("Some")
    })
  )
})

describe("listening", () => {
  it.live("the listener continues after a failed accept, and logs it", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const log = Logger.layer([JsonLog.make((line) => void lines.push(line))])
      const { url } = yield* Effect.provide(start(), log)
      const failed = (message: unknown) => {
        const { server } = message as { readonly server: HttpServer }
        server.emit("error", Object.assign(new Error("accept EMFILE"), { code: "EMFILE" }))
      }
      subscribe("http.server.request.start", failed)
      yield* Effect.addFinalizer(() => Effect.sync(() => unsubscribe("http.server.request.start", failed)))
      expect((yield* send(url, "/predict", { body: predict })).status).toBe(200)
      expect(lines.join("")).toContain('"code":"EMFILE"')
    })
  )

  it.live("the listener reports its address, also over IPv6", () =>
    Effect.gen(function* () {
      const { url, port } = yield* start({ server: { host: "::1" } })
      expect(url).toBe(`http://[::1]:${port}`)
      expect((yield* send(url, "/health/live", { method: "GET" })).status).toBe(200)
    })
  )

  it.live("listening fails with the system's code when the port is taken", () =>
    Effect.gen(function* () {
      const other = createServer()
      yield* Effect.callback<void>((resume) => void other.listen(0, "127.0.0.1", () => resume(Effect.void)))
      yield* Effect.addFinalizer(() => Effect.sync(() => other.close()))
      const address = other.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const front = yield* makeFront()
      const error = yield* Effect.flip(Server.serve(front, { host: "127.0.0.1", port }))
      expect([error._tag, error.code]).toEqual(["ListenError", "EADDRINUSE"])
      expect(error.message).toContain(`127.0.0.1:${port}`)
    })
  )
})
