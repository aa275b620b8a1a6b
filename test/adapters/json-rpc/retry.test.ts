import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { defaults } from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as Batches from "../../../src/adapters/json-rpc/transport/Batches.js"
import * as Egress from "../../../src/adapters/json-rpc/transport/Egress.js"
import { type Answer, HttpFailure } from "../../../src/adapters/json-rpc/transport/Http.js"
import * as Time from "../../support/Time.js"

const start = Date.parse("2026-01-01T00:00:00Z")

/** A node that replies immediately, by attempt; `times` are milliseconds since its creation. */
const node = (answer: (turn: number) => Result.Result<Answer, HttpFailure>) =>
  Effect.gen(function* () {
    const made = yield* Clock.currentTimeMillis
    const times: Array<number> = []
    const batches = Batches.make({
      target: Result.getOrThrow(Egress.target("http://127.0.0.1:1/", "operator", defaults.egress)),
      http: {
        post: () =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            Effect.fromResult(answer(times.push(now - made) - 1))
          )
      },
      limits: defaults.batches,
      retry: defaults.retry,
      onExchange: () => undefined,
      background: yield* FiberSet.makeRuntime()
    })
    return { times, batches }
  })

/** Lets time pass until the asker has its answer. */
const outcome = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const asker = yield* Effect.forkChild(Effect.result(effect))
    while (asker.pollUnsafe() === undefined) yield* Time.adjust("1 second")
    return yield* Fiber.join(asker)
  })

const status = (code: number, retryAfter?: string): Result.Result<Answer, HttpFailure> =>
  Result.succeed({ status: code, retryAfter, body: "" })
const good = Result.succeed({
  status: 200,
  retryAfter: undefined,
  body: '{"jsonrpc":"2.0","id":1,"result":"0x1"}'
})
const gaps = (times: ReadonlyArray<number>) => times.slice(1).map((time, n) => time - (times[n] ?? 0))

const fact = (name: string, test: Effect.Effect<void, unknown, Scope.Scope>) =>
  it.effect(name, () => Effect.andThen(Time.setTime(start), test))

describe("reads that the node limits", () => {
  fact(
    "rate-limited reads are repeated at least twenty times, ever more slowly, within twenty seconds",
    Effect.gen(function* () {
      const { batches, times } = yield* node(() => status(429))
      const result = yield* outcome(batches.read("eth_chainId", []))
      expect(Result.isFailure(result) && result.failure.reason).toBe("rateLimited")
      expect(times.length).toBeGreaterThanOrEqual(21)
      expect(times.at(-1)).toBeLessThan(21_600)
      expect(Math.max(...gaps(times))).toBeLessThanOrEqual(1_500)
      expect(gaps(times)[0]).toBeLessThanOrEqual(75)
    })
  )

  fact(
    "rate-limited reads wait as long as the node asks, in seconds or until a date",
    Effect.gen(function* () {
      const waits = [
        "3",
        "Thu, 01 Jan 2026 00:00:08 GMT",
        "0",
        "nonsense",
        "-5",
        "Thu, 01 Jan 1970 00:00:00 GMT"
      ]
      const { batches, times } = yield* node((turn) =>
        turn < waits.length ? status(429, waits[turn]) : good
      )
      const result = yield* outcome(batches.read("eth_chainId", []))
      expect(Result.isSuccess(result)).toBe(true)
      const [first, second, ...rest] = gaps(times)
      expect(first).toBe(3_000)
      expect(second).toBe(5_000)
      for (const gap of rest) expect(gap).toBeLessThanOrEqual(800)
    })
  )

  fact(
    "reads wait as long as a rate-limit error asks, and not for other errors",
    Effect.gen(function* () {
      const limited = (id: unknown, code: number, seconds: unknown) =>
        Result.succeed({
          status: 200,
          retryAfter: undefined,
          body: JSON.stringify({
            jsonrpc: "2.0",
            id,
            error: { code, message: "limited", data: { rate: { backoff_seconds: seconds } } }
          })
        })
      const turns = [limited(1, -32_005, 4), limited(null, -32_005, 6), limited(1, -32_005, "9")]
      const { batches, times } = yield* node((turn) => turns[turn] ?? good)
      expect(Result.isSuccess(yield* outcome(batches.read("eth_chainId", [])))).toBe(true)
      const [first, second, third] = gaps(times)
      expect([first, second]).toEqual([4_000, 6_000])
      expect(third).toBeLessThan(1_000)
      const other = yield* node(() => limited(1, -32_000, 4))
      yield* outcome(other.batches.read("eth_chainId", []))
      expect(other.times.length).toBe(1)
      const long = yield* node(() => limited(1, -32_005, 1e300))
      const result = yield* outcome(long.batches.read("eth_chainId", []))
      expect(Result.isFailure(result) && result.failure.reason).toBe("rateLimited")
      expect(long.times.length).toBe(1)
    })
  )

  fact(
    "reads fail immediately when the node asks for more time than is left",
    Effect.gen(function* () {
      const { batches, times } = yield* node(() => status(429, "21"))
      const result = yield* outcome(batches.read("eth_chainId", []))
      expect(Result.isFailure(result) && result.failure.reason).toBe("rateLimited")
      expect(times).toEqual([0])
    })
  )
})

describe("reads that meet a refused or cut connection", () => {
  const cut = Result.fail(new HttpFailure({ reason: "unreachable", message: "cut", passing: true }))

  fact(
    "reads over a cut connection are repeated twice, soon",
    Effect.gen(function* () {
      const { batches, times } = yield* node(() => cut)
      const result = yield* outcome(batches.read("eth_chainId", []))
      expect(Result.isFailure(result) && result.failure.reason).toBe("unreachable")
      expect(times.length).toBe(3)
      expect(times.at(-1)).toBeLessThan(300)
    })
  )

  fact(
    "honour what a gateway asks",
    Effect.gen(function* () {
      const { batches, times } = yield* node((turn) => (turn === 0 ? status(503, "2") : good))
      expect(Result.isSuccess(yield* outcome(batches.read("eth_chainId", [])))).toBe(true)
      expect(times).toEqual([0, 2_000])
    })
  )

  fact(
    "reads are not repeated after a permanent failure",
    Effect.gen(function* () {
      const { batches, times } = yield* node(() =>
        Result.fail(new HttpFailure({ reason: "unreachable", message: "no answer", passing: false }))
      )
      yield* outcome(batches.read("eth_chainId", []))
      expect(times).toEqual([0])
    })
  )
})

describe("a call at a block that the node has not seen yet", () => {
  const behind = Result.succeed({
    status: 200,
    retryAfter: undefined,
    body: '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header not found"}}'
  })

  fact(
    "a call at an unseen block is repeated for seconds, and succeeds once the node has caught up",
    Effect.gen(function* () {
      const { batches, times } = yield* node((turn) => (turn < 8 ? behind : good))
      const result = yield* outcome(batches.read("eth_call", [{}, "0x10"]))
      expect(Result.isSuccess(result) && result.success._tag).toBe("result")
      expect(times.length).toBe(9)
      expect(times.at(-1)).toBeGreaterThan(1_000)
    })
  )

  fact(
    "a call at an unseen block fails with the node's last error",
    Effect.gen(function* () {
      const { batches, times } = yield* node(() => behind)
      const result = yield* outcome(batches.read("eth_call", [{}, "0x10"]))
      expect(Result.isFailure(result) && result.failure).toMatchObject({
        reason: "unavailable",
        rpcCode: -32_000,
        message: "header not found"
      })
      expect(times.length).toBe(9)
      expect(times.at(-1)).toBeLessThan(6_000)
    })
  )

  fact(
    "a call at an unseen block is not repeated when it is the block of logs, or a contract says so",
    Effect.gen(function* () {
      for (const [method, message, told] of [
        ["eth_getLogs", "header not found", "unavailable"],
        ["eth_call", "execution reverted: header not found", "error"]
      ] as const) {
        const { batches, times } = yield* node(() =>
          Result.succeed({
            status: 200,
            retryAfter: undefined,
            body: JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32_000, message } })
          })
        )
        const result = yield* outcome(batches.read(method, []))
        expect(Result.isSuccess(result) ? result.success._tag : result.failure.reason).toBe(told)
        expect(times).toEqual([0])
      }
    })
  )
})

describe("a send", () => {
  fact(
    "a send is never repeated",
    Effect.gen(function* () {
      for (const answer of [status(429, "0"), status(503)]) {
        const { batches, times } = yield* node(() => answer)
        expect(Result.isFailure(yield* outcome(batches.once("eth_sendRawTransaction", ["0x"])))).toBe(true)
        expect(times.length).toBe(1)
      }
    })
  )
})

describe("a read whose caller was interrupted", () => {
  fact(
    "a read whose caller was interrupted is not repeated",
    Effect.gen(function* () {
      const { batches, times } = yield* node(() => status(429))
      const asker = yield* Effect.forkChild(batches.read("eth_chainId", []))
      while (times.length < 3) yield* Time.adjust("50 millis")
      yield* Fiber.interrupt(asker)
      const asked = times.length
      yield* Time.adjust("10 seconds")
      expect(times.length).toBe(asked)
    })
  )
})

describe("a defect of the adapter", () => {
  fact(
    "an adapter defect is an unprocessable reply, and never leaves a caller waiting",
    Effect.gen(function* () {
      const { batches } = yield* node(() => {
        throw new Error("planted")
      })
      const result = yield* outcome(batches.read("eth_chainId", []))
      expect(Result.isFailure(result) && result.failure.reason).toBe("notAnRpc")
      const sent = yield* outcome(batches.once("eth_sendRawTransaction", []))
      expect(Result.isFailure(sent) && sent.failure.reason).toBe("notAnRpc")
    })
  )
})
