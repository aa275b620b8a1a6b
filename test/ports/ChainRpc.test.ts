import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { afterAll } from "vitest"
import { ChainRpc } from "../../src/application/ports/chain/ChainRpc.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import { echo, echoCode, execute, funded, sign } from "../support/ChainScript.js"
import * as MemoryChainRpc from "../support/memory/ChainRpc.js"
import * as Time from "../support/Time.js"
import { chainRpcSuite } from "./ChainRpc.suite.js"

const url = "http://127.0.0.1:8545/key"
const options: MemoryChainRpc.Options = {
  chainId: 31_337n,
  execute,
  balances: new Map([[funded, 10n ** 22n]]),
  codes: new Map([[echo, echoCode]])
}

const node = Effect.runSync(MemoryChainRpc.make(options))
const runtime = ManagedRuntime.make(MemoryChainRpc.layer({ [url]: node }))
afterAll(() => runtime.dispose())

chainRpcSuite("a node in memory", {
  run: (effect) => runtime.runPromise(effect),
  url: () => url,
  deadUrl: "http://127.0.0.1:1/",
  chainId: 31_337n
})

describe("a node in memory", () => {
  it.effect("a node in memory charges the sender fee and value, only the fee on a revert", () =>
    Effect.gen(function* () {
      const one = yield* MemoryChainRpc.make(options)
      const chain = one.client("http://one")
      yield* chain.sendRawTransaction(
        yield* sign(chain, { nonce: 0n, value: 5n, data: Hex.unsafe(`0x${"01".repeat(32)}`) })
      )
      const fee = 30_000n * 2_000_000_000n
      expect(yield* chain.balance(funded)).toBe(10n ** 22n - fee - 5n)
      expect(yield* chain.balance(echo)).toBe(5n)
      yield* chain.sendRawTransaction(yield* sign(chain, { nonce: 1n, value: 5n }))
      expect(yield* chain.balance(funded)).toBe(10n ** 22n - 2n * fee - 5n)
      expect((yield* one.mined).map(({ from, transaction }) => [from, transaction.nonce])).toEqual([
        [funded, 0n],
        [funded, 1n]
      ])
    })
  )

  it.effect("a node in memory runs code that reads and writes the node", () =>
    Effect.gen(function* () {
      const one = yield* MemoryChainRpc.make({
        ...options,
        execute: (_, self) =>
          Effect.as(self.setCode(funded, Hex.unsafe("0xef0100")), {
            success: true,
            data: Hex.empty,
            gasUsed: 1n,
            logs: []
          })
      })
      const chain = one.client("http://one")
      yield* chain.sendRawTransaction(yield* sign(chain, { nonce: 0n }))
      expect(yield* chain.code(funded)).toBe("0xef0100")
    })
  )

  it.effect("a node in memory mines accepted transactions, also after their sender was interrupted", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const one = yield* MemoryChainRpc.make({
        ...options,
        execute: (call, self, ...more) =>
          Deferred.succeed(started, undefined).pipe(
            Effect.andThen(Effect.sleep("1 second")),
            Effect.andThen(execute(call, self, ...more))
          )
      })
      const chain = one.client("http://one")
      const giving = yield* Effect.forkChild(chain.sendRawTransaction(yield* sign(chain, { nonce: 0n })))
      yield* Deferred.await(started)
      yield* Effect.sync(() => giving.interruptUnsafe())
      yield* Time.adjust("1 second")
      yield* Fiber.await(giving)
      expect(yield* one.mined).toHaveLength(1)
      expect(yield* chain.transactionCount(funded, "latest")).toBe(1n)
    })
  )

  it.effect("a node in memory fails every call during an outage, then resumes", () =>
    Effect.gen(function* () {
      const one = yield* MemoryChainRpc.make(options)
      const rpc = yield* Effect.provide(
        ChainRpc,
        MemoryChainRpc.layer({ "https://node.example/v1/secret": one })
      )
      const chain = yield* rpc.connect("https://node.example/v1/secret", "operator")
      const raw = yield* sign(chain, { nonce: 0n })
      const before = yield* chain.block("latest")
      yield* one.breakDown("rateLimited")
      for (const effect of [Effect.asVoid(chain.balance(funded)), chain.sendRawTransaction(raw)]) {
        const error = yield* Effect.flip(effect)
        expect(error).toMatchObject({ reason: "rateLimited", origin: "https://node.example" })
        expect(error.message).not.toContain("secret")
      }
      yield* one.breakDown(null)
      expect(yield* chain.block("latest")).toEqual(before)
      yield* chain.sendRawTransaction(raw)
      const again = yield* Effect.flip(chain.sendRawTransaction(raw))
      expect(again.message).toBe("already known")
    })
  )

  it.effect("mines empty blocks on demand", () =>
    Effect.gen(function* () {
      const one = yield* MemoryChainRpc.make(options)
      const block = yield* one.mine
      expect(block.number).toBe(1n)
      expect(yield* one.client("http://one").block("latest")).toEqual(block)
    })
  )
})
