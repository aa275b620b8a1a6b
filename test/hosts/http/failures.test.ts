import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { type Code, catalogue } from "../../../src/application/failures/Catalogue.js"
import {
  type Failure,
  invalid,
  TooManyRequests,
  Unavailable,
  unauthorized,
  unprocessable
} from "../../../src/application/failures/Failure.js"
import * as Reasons from "../../../src/application/failures/Reasons.js"
import { AbiStoreError } from "../../../src/application/ports/AbiStore.js"
import { BudgetsError } from "../../../src/application/ports/Budgets.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { type Refusal, Refusals } from "../../../src/application/ports/operator/Refusals.js"
import * as Statuses from "../../../src/hosts/http/message/Statuses.js"
import * as JsonLog from "../../../src/hosts/service/JsonLog.js"
import { posts } from "../../support/http/Contract.js"
import { envelope, handlers, key, post, send, start } from "../../support/http/Service.js"

const example = (name: string) => posts.find((endpoint) => endpoint.name === name)?.example
const execute = (url: string) => post(url, "/execute", example("execute"))

const failing = (failure: Failure) =>
  Effect.flatMap(start({ handlers: { execute: () => Effect.fail(failure) } }), ({ url }) => execute(url))

const line = (cause: Cause.Cause<unknown>): string => {
  let written = ""
  const layer = Logger.layer([
    JsonLog.make((text) => {
      written = text
    })
  ])
  Effect.runSync(Effect.provide(Effect.logError("x", cause), layer))
  return written
}

/** Log annotations of the effect, and causes in the operator's format. */
const logged = () => {
  const lines: Array<Record<string, unknown>> = []
  const logger = Logger.make(({ fiber, cause, message }) => {
    lines.push({
      message: String(message),
      ...Object.fromEntries(Object.entries(fiber.getRef(References.CurrentLogAnnotations))),
      ...(cause.reasons.length === 0 ? {} : { cause: JSON.parse(line(cause)).cause })
    })
  })
  return { lines, layer: Logger.layer([logger]) }
}

describe("a use case's failure", () => {
  const codes = Object.keys(catalogue) as ReadonlyArray<Code>
  const of = (code: Code): Failure | null => {
    const entry = catalogue[code]
    const details = [{ path: "operations[0].to", message: Reasons.known("why"), missing: "12", ok: false }]
    switch (Statuses.of(code)) {
      case 400:
        return invalid(code as "invalid_rpc", details)
      case 401:
        return unauthorized(code as "version_not_found", details)
      case 422:
        return unprocessable(code as "insufficient_funds", details, {
          extra: { txHash: "0x12", returnData: [1n] }
        })
      case 429:
        return new TooManyRequests({
          code: "rate_limited",
          message: entry.text,
          details,
          retryAfterSeconds: 2.2
        })
      case 503:
        return new Unavailable({
          code: code as "overloaded",
          message: entry.text,
          details,
          retryAfterSeconds: 0
        })
      default:
        return null
    }
  }

  it.live.each(codes.filter((code) => of(code) !== null))(
    "%s is its catalogue entry in the envelope",
    (code) =>
      Effect.gen(function* () {
        const failure = of(code)
        if (failure === null) return
        const answer = yield* failing(failure)
        const body = envelope(answer)
        expect(answer.status).toBe(Statuses.of(code))
        expect(body).toMatchObject({
          error: catalogue[code].text,
          code,
          requestId: answer.headers.get("x-request-id"),
          details: [{ path: "operations[0].to", message: "why", missing: "12", ok: false }]
        })
        if (answer.status === 422) expect(body).toMatchObject({ txHash: "0x12", returnData: ["1"] })
        const retryAfter = { 429: "3", 503: "1" }[answer.status] ?? null
        expect(answer.headers.get("retry-after")).toBe(retryAfter)
      })
  )

  it.live("a failure uses its own message where its code allows, and never overwrites the envelope", () =>
    Effect.gen(function* () {
      const chain = envelope(yield* failing(invalid("unsupported_chain", [], "unsupported chain id 7")))
      expect(chain).toMatchObject({ error: "unsupported chain id 7", code: "unsupported_chain" })
      const extra = { error: "x", code: "y", requestId: "z", details: "no", wallet: "0x1" }
      const body = envelope(yield* failing(unprocessable("wallet_busy", [], { extra })))
      expect(body).toMatchObject({ error: "wallet busy", code: "wallet_busy", details: [], wallet: "0x1" })
    })
  )

  it.live("a refusal is kept for the operator with its first detail, once where both say the same", () => {
    const kept: Array<string> = []
    const note = ({ message }: Refusal) => void kept.push(message)
    return Effect.gen(function* () {
      const [same, other] = [Reasons.text("policy", { problem: "too much" }), Reasons.known("why")]
      for (const message of [same, other])
        yield* failing(unprocessable("policy_refused", [{ path: "", message }], { message: same }))
      expect(kept).toEqual(["too much", "too much: why"])
    }).pipe(Effect.provideService(Refusals, { ...Refusals.defaultValue(), note }))
  })
})

describe("a crash", () => {
  const secret = "s3cr3t-in-a-message"
  const crashes: ReadonlyArray<readonly [string, () => Effect.Effect<never>]> = [
    ["a defect", () => Effect.die(new Error(secret))],
    [
      "a throw before the effect",
      () => {
        throw new Error(secret)
      }
    ],
    [
      "a throw inside the effect",
      () =>
        Effect.sync(() => {
          throw new TypeError(secret)
        })
    ],
    ["a rejected promise", () => Effect.promise(() => Promise.reject(new Error(secret)))],
    ["a thrown value that is not an Error", () => Effect.die({ secret, big: 1n })],
    [
      "several together",
      () => Effect.all([Effect.die(secret), Effect.die(secret)], { concurrency: 2 }) as Effect.Effect<never>
    ]
  ]

  it.live.each(crashes)(
    "a crash by %s is 500 without detail and is logged once under its request id",
    ([, crash]) =>
      Effect.gen(function* () {
        const { layer, lines } = logged()
        yield* Effect.gen(function* () {
          for (const handler of [{ execute: crash }, { predict: crash }]) {
            lines.length = 0
            const { url } = yield* start({ handlers: handler })
            const name = Object.keys(handler)[0] ?? ""
            const answer = yield* post(url, `/${name}`, example(name))
            const body = envelope(answer)
            expect([answer.status, body.error, body.code, body.details]).toEqual([
              500,
              "internal error",
              "internal_error",
              []
            ])
            expect(answer.text).not.toContain(secret)
            const [failed, ...others] = lines.filter(({ cause }) => cause !== undefined)
            expect([failed?.requestId, others]).toEqual([body.requestId, []])
            expect(failed?.cause).toContain(secret)
            expect((yield* send(url, "/health/live", { method: "GET" })).status).toBe(200)
          }
        }).pipe(Effect.provide(layer))
      })
  )

  it.live("an interruption within the use case is 500, for reads and writes", () =>
    Effect.gen(function* () {
      const { url } = yield* start({
        handlers: { predict: () => Effect.interrupt, execute: () => Effect.interrupt }
      })
      expect(envelope(yield* post(url, "/predict", example("predict"))).code).toBe("internal_error")
      expect(envelope(yield* execute(url)).code).toBe("internal_error")
    }).pipe(Effect.provide(logged().layer))
  )

  it.live("an unavailable store is 503 with Retry-After, for reads and writes", () =>
    Effect.gen(function* () {
      const down = [
        new AbiStoreError({ reason: "unavailable", message: secret }),
        new BudgetsError({ message: secret }),
        new JournalError({ message: secret })
      ]
      for (const error of down) {
        const handlers = { predict: () => Effect.die(error), execute: () => Effect.die(error) }
        const { url } = yield* start({ handlers })
        for (const answer of [yield* post(url, "/predict", example("predict")), yield* execute(url)]) {
          expect([answer.status, envelope(answer).code]).toEqual([503, "unavailable"])
          expect(answer.headers.get("retry-after")).toBe("1")
          expect(answer.text).not.toContain(secret)
        }
      }
    }).pipe(Effect.provide(logged().layer))
  )

  it.live(
    "an answer that does not fit the contract is 500, and the log names the place without the value",
    () =>
      Effect.gen(function* () {
        const { layer, lines } = logged()
        yield* Effect.gen(function* () {
          const { url } = yield* start({
            handlers: {
              getSigner: () => Effect.succeed({ address: 12345678, publicKey: "", type: "HSM" } as never)
            }
          })
          const answer = yield* post(url, "/getSigner", example("getSigner"))
          expect(envelope(answer).code).toBe("internal_error")
          const cause = String(lines.find(({ cause }) => cause !== undefined)?.cause)
          expect(cause).toContain(
            'the answer of getSigner does not fit the contract: Expected string\n  at ["address"]'
          )
          expect(cause).not.toContain("12345678")
        }).pipe(Effect.provide(layer))
      })
  )
})

describe("the log", () => {
  it.live(
    "has one line per request, of what the request was and became, and nothing that a caller wrote",
    () =>
      Effect.gen(function* () {
        const { layer, lines } = logged()
        yield* Effect.gen(function* () {
          const { url } = yield* start({
            handlers: {
              execute: (caller) => {
                caller.onChain?.(137n)
                return handlers.execute()
              }
            }
          })
          const secret = "https://node.example/v2/0123456789abcdef"
          const body = { ...Object(example("execute")), settings: { rpc: secret, entryPoint: secret } }
          const refused = yield* post(url, "/execute", body)
          const done = yield* execute(url)
          const unknown = yield* send(url, "/secret-path?key=secret")
          const outside = yield* send(url, "/predict", { headers: { "x-api-key": "wrong-key" } })
          const id = (answer: { readonly headers: Headers }) => answer.headers.get("x-request-id")
          const ms = expect.any(Number)
          const message = "request"
          expect(lines).toEqual([
            {
              message,
              requestId: id(refused),
              accountId: "acme",
              endpoint: "POST /execute",
              chainId: null,
              status: 400,
              code: "invalid_request",
              ms
            },
            {
              message,
              requestId: id(done),
              accountId: "acme",
              endpoint: "POST /execute",
              chainId: "137",
              status: 200,
              code: null,
              ms
            },
            {
              message,
              requestId: id(unknown),
              accountId: null,
              endpoint: null,
              chainId: null,
              status: 404,
              code: "not_found",
              ms
            },
            {
              message,
              requestId: id(outside),
              accountId: null,
              endpoint: "POST /predict",
              chainId: null,
              status: 401,
              code: "unauthorized",
              ms
            }
          ])
          const text = JSON.stringify(lines)
          for (const part of [key, "wrong-key", "node.example", "0123456789abcdef", "secret"])
            expect(text).not.toContain(part)
        }).pipe(Effect.provide(layer))
      })
  )

  it.effect("JSON lines contain bigints, but no URL paths or long hex of causes", () =>
    Effect.gen(function* () {
      const written: Array<string> = []
      const layer = Logger.layer([JsonLog.make((line) => void written.push(line))])
      const privateKey = `0x${"5e".repeat(32)}`
      yield* Effect.gen(function* () {
        yield* Effect.annotateLogs(Effect.logInfo("sent", { wei: 10n }), { requestId: "r", gas: 21_000n })
        const cyclic: Record<string, unknown> = {}
        cyclic.self = cyclic
        yield* Effect.annotateLogs(Effect.logError(cyclic, Cause.die({ cyclic, wei: 1n })), { cyclic })
        yield* Effect.logError(
          "failed",
          Cause.die(
            new Error(`POST https://user:pw@node.example:8545/v2/KEY?x=1 with ${privateKey}\nand wss://a/b`)
          )
        )
      }).pipe(Effect.provide(layer))
      expect(written.every((line) => line.endsWith("\n") && line.indexOf("\n") === line.length - 1)).toBe(
        true
      )
      const [first, , second] = written.map((line) => JSON.parse(line))
      expect(first).toMatchObject({
        level: "INFO",
        message: 'sent {"wei":"10"}',
        requestId: "r",
        gas: "21000"
      })
      expect(second.cause).toContain("POST https://node.example:8545 with 0x5e5e5e5e...")
      expect(second.cause).toContain("wss://a")
      for (const part of ["KEY", "pw", "x=1", privateKey, "wss://a/b"]) expect(written[2]).not.toContain(part)
    })
  )
})
