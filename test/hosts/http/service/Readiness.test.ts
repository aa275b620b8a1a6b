import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Health from "../../../../src/application/observe/Health.js"
import {
  type ChainClient,
  ChainRpc,
  ChainRpcError
} from "../../../../src/application/ports/chain/ChainRpc.js"
import { JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as Readiness from "../../../../src/hosts/http/service/Readiness.js"
import { envelope, send, start } from "../../../support/http/Service.js"
import * as Make from "../../../support/journal/Make.js"
import * as Time from "../../../support/Time.js"

const get = (url: string) => send(url, "/health/ready", { method: "GET" })

describe("a service is ready", () => {
  it.effect("a service is ready while its journal answers one query per second", () =>
    Effect.gen(function* () {
      let asked = 0
      let works = true
      const ready = yield* Readiness.make({
        lease: () => Effect.succeed([]),
        release: () =>
          Effect.suspend(() => {
            asked += 1
            return works ? Effect.void : Effect.fail(new JournalError({ message: "locked" }))
          })
      })
      expect(yield* Effect.all([ready, ready, ready], { concurrency: 3 })).toEqual([true, true, true])
      expect(asked).toBe(1)
      works = false
      expect(yield* ready).toBe(true)
      yield* Time.adjust("1 second")
      expect([yield* ready, asked]).toEqual([false, 2])
      works = true
      yield* Time.adjust("1 second")
      expect([yield* ready, asked]).toEqual([true, 3])
    })
  )

  it.effect("a service is not ready while its journal rejects writes, even if it accepts a no-op", () =>
    Effect.gen(function* () {
      let isFull = true
      const ready = yield* Readiness.make({
        lease: () =>
          Effect.suspend(() =>
            isFull ? Effect.fail(new JournalError({ message: "full" })) : Effect.succeed([])
          ),
        release: () => Effect.void
      })
      expect(yield* ready).toBe(false)
      isFull = false
      yield* Time.adjust("1 second")
      expect(yield* ready).toBe(true)
    })
  )

  it.effect(
    "a service is not ready once its journal is silent for a second, even without waiting callers",
    () =>
      Effect.gen(function* () {
        const asked = yield* Deferred.make<void>()
        const ready = yield* Readiness.make({
          lease: () => Effect.succeed([]),
          release: () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
        })
        const first = yield* Effect.forkChild(ready)
        yield* Deferred.await(asked)
        yield* Effect.forkChild(Fiber.interrupt(first))
        const second = yield* Effect.forkChild(ready)
        yield* Time.adjust("1 second")
        expect(yield* Fiber.join(second)).toBe(false)
      })
  )

  it.effect("each chain shows whether its own node answers", () =>
    Effect.gen(function* () {
      const network = (chainId: bigint, rpc: string) => ({
        profile: NetworkProfile.make({ chainId, rpc: Redacted.make(rpc) }),
        least: 0n
      })
      const away = "http://away.example"
      const health = Health.make([network(1n, "http://up.example"), network(2n, away)])
      expect(Readiness.nodes(health)).toEqual({ 1: "unknown", 2: "unknown" })
      const head = { number: 7n, hash: Make.word(7), timestamp: 0, baseFeePerGas: 3n, gasLimit: 30_000_000n }
      const rpcs = Layer.succeed(ChainRpc, {
        connect: (url) =>
          url === away
            ? Effect.fail(new ChainRpcError({ reason: "unavailable", message: "away", origin: url }))
            : Effect.succeed({ block: () => Effect.succeed(head) } as unknown as ChainClient)
      })
      yield* Effect.provide(health.poll, rpcs)
      expect(Readiness.nodes(health)).toEqual({ 1: "up", 2: "down" })
    })
  )

  it.live("a service that is not ready answers 503 with the envelope of all refusals", () =>
    Effect.gen(function* () {
      const { url } = yield* start({ front: { ready: Effect.succeed(false) } })
      const answer = yield* get(url)
      expect([answer.status, envelope(answer).code, answer.headers.get("retry-after")]).toEqual([
        503,
        "unavailable",
        "1"
      ])
      expect((yield* send(url, "/health/live", { method: "GET" })).status).toBe(200)
    })
  )
})
