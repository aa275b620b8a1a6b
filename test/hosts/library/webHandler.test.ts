import * as Http from "castellan/http"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as Layer from "effect/Layer"
import { afterEach, describe, expect, it } from "vitest"
import * as Address from "../../../src/domain/primitives/Address.js"
import { posts } from "../../support/http/Contract.js"
import { runSource } from "../../support/process/Program.js"
import * as Configured from "../../support/web/Configured.js"

const predict = JSON.stringify(posts.find(({ name }) => name === "predict")?.example)
const ends: Array<() => unknown> = []

/** A separate service as a fetch handler, ended after the test. */
const start = (file: Partial<Http.Config.File> = {}, options: Http.WebHandlerOptions = {}) => {
  const lines: Array<Record<string, unknown>> = []
  const { config, key, remove } = Configured.make(file)
  const service = Http.toWebHandler(config, {
    log: (line) => void lines.push(JSON.parse(line)),
    ...options
  })
  ends.push(remove, service.dispose)
  const ask = async (path: string, init: RequestInit = {}) => {
    const headers = { "content-type": "application/json", "x-api-key": key }
    const response = await service.handler(
      new Request(`http://wallets.test${path}`, { method: "POST", headers, ...init })
    )
    const text = await response.text()
    const isJson = text !== "" && response.headers.get("content-type") === "application/json"
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : null
    }
  }
  return { ...service, ask, config, key, lines }
}

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A body that starts but never ends. */
const endless = () => {
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      sent += 65_536
      controller.enqueue(new Uint8Array(65_536).fill(0x20))
    }
  })
  return { init: { body, duplex: "half" } as RequestInit, sent: () => sent }
}

describe("toWebHandler", () => {
  it("answers like the Node process: use cases, one envelope for failures, one log line each", async () => {
    const { ask, lines } = start()
    const answer = await ask("/predict", { body: predict })
    expect(answer.status).toBe(200)
    expect(answer.body[0].wallet).toMatch(/^0x[0-9a-fA-F]{40}$/)
    expect(answer.headers.get("ratelimit-limit")).toBe("300")
    const codes = [
      (await ask("/nope")).body.code,
      (await ask("/predict", { headers: {} })).body.code,
      (await ask("/predict", { body: "{" })).body.code,
      (await ask("/predict", { method: "DELETE" })).body.code
    ]
    expect(codes).toEqual(["not_found", "unauthorized", "invalid_json", "method_not_allowed"])
    const requests = lines.filter(({ message }) => message === "request")
    expect(requests.map(({ code, endpoint, status }) => ({ code, endpoint, status }))).toEqual([
      { endpoint: "POST /predict", status: 200, code: null },
      { endpoint: null, status: 404, code: "not_found" },
      { endpoint: "POST /predict", status: 401, code: "unauthorized" },
      { endpoint: "POST /predict", status: 400, code: "invalid_json" },
      { endpoint: null, status: 405, code: "method_not_allowed" }
    ])
    expect(requests[0]?.requestId).toBe(answer.headers.get("x-request-id"))
  })

  it("enforces the body limit, and leaves an endless body unread", async () => {
    const { ask } = start({ limits: { bodyBytes: 2_048 } })
    const padded = (bytes: number) => ({ body: `{"padding":"${"x".repeat(bytes - 14)}"}` })
    expect((await ask("/predict", padded(2_048))).body.code).toBe("unknown_field")
    expect((await ask("/predict", padded(2_049))).body.code).toBe("body_too_large")
    const { init, sent } = endless()
    expect((await ask("/predict", init)).body.code).toBe("body_too_large")
    expect(sent()).toBeLessThan(16 * 1_024 * 1_024)
  })

  it("reads a body that no header announces", async () => {
    const { ask } = start()
    expect((await ask("/getbundleraddress", { body: '{"x":1}' })).body.code).toBe("unknown_field")
  })

  it("treats an empty stream as no body, and rejects content on DELETE", async () => {
    const { ask } = start()
    const stream = (...chunks: ReadonlyArray<string>) => {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
          controller.close()
        }
      })
      return { method: "DELETE", body, duplex: "half" } as RequestInit
    }
    const path = "/requests/5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"
    const answers = [
      await ask(path, stream()),
      await ask(path, stream("", "{}")),
      await ask(path, { ...endless().init, method: "DELETE" })
    ]
    expect(answers.map(({ body }) => body.code)).toEqual([
      "request_not_found",
      "invalid_request",
      "invalid_request"
    ])
    expect(answers[1]?.body.details[0].message).toBe("the method takes no body")
  })

  it("limits unauthenticated callers by the address from the host", async () => {
    const { ask } = start(
      { limits: { anonymousPerMinute: 1 } },
      { remoteAddress: (request) => request.headers.get("x-peer") }
    )
    const from = async (peer: string) => (await ask("/predict", { headers: { "x-peer": peer } })).status
    expect([await from("192.0.2.1"), await from("192.0.2.1"), await from("192.0.2.2")]).toEqual([
      401, 429, 401
    ])
  })

  it("serves its base path and no other path", async () => {
    const { ask } = start({}, { basePath: "/api/wallets" })
    expect((await ask("/api/wallets/predict", { body: predict })).status).toBe(200)
    for (const path of ["/predict", "/api/walletspredict", "/api/wallets"])
      expect((await ask(path, { body: predict })).body.code).toBe("not_found")
    const { body } = await ask("/api/wallets/openapi.json", { method: "GET" })
    expect(body.servers).toEqual([{ url: "/api/wallets" }])
    expect((await ask("/api/wallets/docs", { method: "GET" })).text).toContain('href="openapi.json"')
  })

  it("serves clients derived from the contract", async () => {
    const { handler, key } = start({}, { basePath: "/api" })
    const fetchHere: typeof globalThis.fetch = (input, init) => handler(new Request(input, init))
    const program = Effect.gen(function* () {
      const client = yield* HttpApiClient.make(Http.api, {
        baseUrl: "http://wallets.test/api",
        transformClient: HttpClient.mapRequest(HttpClientRequest.setHeader(Http.apiKeyHeader, key))
      })
      return yield* client.wallets.predict({
        payload: {
          accounts: [{ salt: "bob", walletCustody: 1 }],
          settings: {
            factory: Address.unsafe(`0x${"fa".repeat(20)}`),
            beaconAdminAddress: Address.unsafe(`0x${"be".repeat(20)}`),
            beaconAdminCreationCode: "0x60"
          }
        }
      })
    })
    const layer = Layer.provide(FetchHttpClient.layer, Layer.succeed(FetchHttpClient.Fetch, fetchHere))
    const [bob] = await Effect.runPromise(Effect.provide(program, layer))
    expect(bob).toMatchObject({ salt: "bob", error: null })
  })

  it("runs several times in one process, each with its own keys and end", async () => {
    const [first, second] = [start(), start()]
    expect((await first.ask("/predict", { body: predict })).status).toBe(200)
    expect((await second.ask("/predict", { body: predict })).status).toBe(200)
    const foreign = { "content-type": "application/json", "x-api-key": first.key }
    expect((await second.ask("/predict", { body: predict, headers: foreign })).status).toBe(401)
    await first.dispose()
    expect((await first.ask("/predict", { body: predict })).body.code).toBe("shutting_down")
    expect((await second.ask("/predict", { body: predict })).status).toBe(200)
  })

  it("answers running requests when disposed", async () => {
    const { ask, dispose, ready } = start({ limits: { drainMillis: 0 } })
    await ready
    let begun: () => void = () => undefined
    const reading = new Promise<void>((resolve) => {
      begun = resolve
    })
    const body = new ReadableStream<Uint8Array>({ pull: () => begun() }, { highWaterMark: 0 })
    const answer = ask("/predict", { body, duplex: "half" } as RequestInit)
    await reading
    await dispose()
    expect((await answer).body.code).toBe("shutting_down")
  })

  it("reports a failed start and answers 503", async () => {
    const { ask, dispose, lines, ready } = start({ database: { path: "/nowhere/castellan.sqlite" } })
    await expect(ready).rejects.toBeInstanceOf(Http.StartError)
    const { body, headers, status } = await ask("/predict", { body: predict })
    expect({ status, code: body.code, requestId: body.requestId }).toEqual({
      status: 503,
      code: "unavailable",
      requestId: headers.get("x-request-id")
    })
    expect(lines.map(({ message }) => message)).toContain("service start failed")
    await dispose()
  })

  it("leaves no work running", async () => {
    const program = await runSource("test/hosts/library/program.ts")
    ends.push(() => program.child.kill("SIGKILL"))
    expect({ code: await program.ended, stderr: program.stderr() }).toEqual({ code: 0, stderr: "" })
    expect(program.stdout()).toContain("disposed after 200")
  })
})
