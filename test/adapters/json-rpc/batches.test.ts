import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import * as EthersChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import { defaults } from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as Batches from "../../../src/adapters/json-rpc/transport/Batches.js"
import * as Egress from "../../../src/adapters/json-rpc/transport/Egress.js"
import type { NamedBy } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Holding from "../../../src/application/ports/journal/Holding.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { callsOf, type HostileNode, honest, json } from "../../support/HostileNode.js"
import { acme, bolt } from "../../support/NamedBy.js"
import * as Time from "../../support/Time.js"
import { balances, connect, http, options, raw, reasonOf } from "./support.js"

const five = Address.unsafe(`0x${"05".padStart(40, "0")}`)

describe("the answers to a batch", () => {
  const answering = (change: (answers: Array<unknown>) => unknown) =>
    http((response, body) =>
      json(
        response,
        change(
          callsOf(body).map(({ id, params }) => ({
            jsonrpc: "2.0",
            id,
            result: `0x${String(params[0]).slice(-2)}`
          }))
        )
      )
    )
  const results = (change: (answers: Array<unknown>) => unknown) =>
    Effect.gen(function* () {
      const node = yield* answering(change)
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 4)
      return answers.map((answer) => (answer._tag === "Success" ? answer.success : answer.failure.reason))
    })

  it.live("replies to a batch are matched by id, whatever their order", () =>
    Effect.map(
      results((answers) => answers.reverse()),
      (found) => expect(found).toEqual([0n, 1n, 2n, 3n])
    )
  )

  it.live("a reply missing from a batch fails only its call", () =>
    Effect.map(
      results((answers) => answers.filter((_, place) => place !== 2)),
      (found) => expect(found).toEqual([0n, 1n, "notAnRpc", 3n])
    )
  )

  const unbelievable: ReadonlyArray<readonly [string, (answers: Array<unknown>) => unknown]> = [
    ["one twice", (answers) => [...answers, answers[0]]],
    ["an unrequested reply", (answers) => [...answers, { jsonrpc: "2.0", id: 1_000, result: "0x0" }]],
    ["one without an id", (answers) => [...answers.slice(1), { jsonrpc: "2.0", result: "0x0" }]],
    ["a number", (answers) => [...answers.slice(1), 7]],
    ["only the first", (answers) => answers[0]],
    ["an object of them", (answers) => ({ ...answers })]
  ]
  for (const [name, change] of unbelievable)
    it.live(`replies to a batch with ${name} are all rejected`, () =>
      Effect.map(results(change), (found) =>
        expect(found).toEqual(["notAnRpc", "notAnRpc", "notAnRpc", "notAnRpc"])
      )
    )

  it.live("one error for all of it is every call's", () =>
    Effect.map(
      results(() => ({ jsonrpc: "2.0", id: null, error: { code: -32_001, message: "unauthorized" } })),
      (found) => expect(found).toEqual(["rejected", "rejected", "rejected", "rejected"])
    )
  )

  it.live("a node that takes few concurrent calls gets small batches from then on", () =>
    Effect.gen(function* () {
      const refusals = [
        { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "batch too large" } },
        [{ jsonrpc: "2.0", id: 1, error: { code: -32_600, message: "batch too large" } }]
      ]
      for (const refusal of refusals) {
        const node = yield* http((response, body) => {
          if (callsOf(body).length > 3) json(response, refusal)
          else honest(response, body, ({ params }) => `0x${String(params[0]).slice(-2)}`)
        })
        const chain = yield* connect(node)
        const expected = Array.from({ length: 10 }, (_, n) => BigInt(n))
        const values = (answers: Effect.Success<ReturnType<typeof balances>>) =>
          answers.map((answer) => answer._tag === "Success" && answer.success)
        expect(values(yield* balances(chain, 10))).toEqual(expected)
        const before = node.seen.length
        expect(values(yield* balances(chain, 10))).toEqual(expected)
        expect(node.seen.slice(before).map(({ body }) => callsOf(body).length)).toEqual([2, 2, 2, 2, 2])
      }
    })
  )

  it.effect("a node that took few calls for a moment gets twice as many every ten minutes", () =>
    Effect.gen(function* () {
      const trouble = { takes: 1 }
      const node = yield* http((response, body) => {
        if (callsOf(body).length > trouble.takes) response.writeHead(413).end("too large")
        else honest(response, body, () => "0x1")
      })
      const chain = yield* connect(node)
      const sizes = Effect.gen(function* () {
        const before = node.seen.length
        expect((yield* balances(chain, 8)).every(({ _tag }) => _tag === "Success")).toBe(true)
        return node.seen.slice(before).map(({ body }) => callsOf(body).length)
      })
      expect((yield* sizes).slice(0, 5)).toEqual([8, 4, 2, 1, 1])
      yield* Time.adjust("10 minutes")
      const again = yield* sizes
      expect([again.filter((size) => size === 2), again.filter((size) => size === 1).length]).toEqual([
        [2],
        8
      ])
      trouble.takes = 256
      yield* Time.adjust("9 minutes")
      expect((yield* sizes).length).toBe(8)
      // The first request of a larger size goes out unaccompanied.
      for (const expected of [[2, 2, 2, 2], [4, 4], [8], [8]]) {
        yield* Time.adjust("10 minutes")
        expect(yield* sizes).toEqual(expected)
      }
    })
  )

  it.live("a node that takes no batches, or replies 413, gets single calls", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => {
        if (body.startsWith("[")) response.writeHead(413).end("too large")
        else honest(response, body, () => "0x1")
      })
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 9)
      expect(answers.every(({ _tag }) => _tag === "Success")).toBe(true)
      expect(node.seen.filter(({ body }) => !body.startsWith("[")).length).toBe(9)
    })
  )
})

describe("a moment", () => {
  it.live("a batch has the calls of fibers that were ready, then stopped before their call", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => honest(response, body, () => "0x1"))
      const chain = yield* connect(node)
      const ready: Array<() => void> = []
      /** Runs one task a turn of the event loop, and stops each fiber after every 16 steps. */
      const scheduler: Scheduler.Scheduler = {
        executionMode: "async",
        shouldYield: (fiber) => fiber.currentOpCount % 16 === 15,
        makeDispatcher: () => ({
          scheduleTask: (task) => {
            ready.push(task)
            setImmediate(() => ready.shift()?.())
          },
          flush: () => undefined
        })
      }
      const steps = (count: number) =>
        Effect.forEach(Array.from({ length: count }), () => Effect.void, { discard: true })
      yield* Effect.forEach(
        [0, 0, 5, 0],
        (count, place) =>
          Effect.andThen(steps(count), chain.balance(Address.unsafe(`0x${String(place).padStart(40, "0")}`))),
        { concurrency: "unbounded" }
      ).pipe(Effect.provideService(Scheduler.Scheduler, scheduler))
      expect(node.seen.map(({ body }) => callsOf(body).length)).toEqual([4])
    })
  )

  it.live("calls not yet sent when the scope ends fail", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => honest(response, body, () => "0x1"))
      const scope = yield* Scope.make()
      const rpc = yield* Scope.provide(EthersChainRpc.make({ egress: { allowLoopback: true } }), scope)
      const chain = yield* rpc.connect(node.url, acme)
      const waiting = yield* Effect.forkChild(reasonOf(chain.call({ to: five, data: Hex.empty }), node))
      yield* Effect.yieldNow
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(waiting)).toBe("unreachable")
      expect(node.seen).toEqual([])
    })
  )
})

describe("the work that answers what several ask", () => {
  it.effect("shared work has only the span of its first caller", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const { read, once } = Batches.make({
        target: Result.getOrThrow(Egress.target("http://127.0.0.1:1/", "operator", defaults.egress)),
        http: {
          post: () =>
            Effect.withFiber((fiber) => {
              const span = fiber.cache.span
              const parent = span?._tag === "Span" ? Option.getOrUndefined(span.parent) : undefined
              seen.push({
                annotations: fiber.getRef(References.CurrentLogAnnotations),
                holding: fiber.getRef(Holding.begun).holding,
                asker: parent?._tag === "Span" ? parent.name : null
              })
              return Effect.succeed({ status: 500, retryAfter: undefined, body: "" })
            })
        },
        limits: defaults.batches,
        retry: { ...defaults.retry, unreachable: 0 },
        onExchange: () => undefined,
        background: yield* FiberSet.makeRuntime()
      })
      const holding = { chainId: 1n, signer: five, epoch: 1 }
      for (const ask of [read("eth_chainId", []), once("eth_sendRawTransaction", [])]) {
        const asker = ask.pipe(
          Effect.flip,
          Effect.annotateLogs({ requestId: "1" }),
          Effect.provideService(Holding.begun, { holding }),
          Effect.withSpan("asker")
        )
        yield* Effect.all([asker, Effect.flip(ask)], { concurrency: "unbounded" })
      }
      const nothing = { annotations: {}, holding: null }
      expect(seen).toEqual([
        { ...nothing, asker: "asker" },
        { ...nothing, asker: "asker" },
        { ...nothing, asker: null }
      ])
    })
  )
})

describe("connections", () => {
  it.live("connections are kept and reused", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => honest(response, body, () => "0x1"))
      const chain = yield* connect(node)
      for (let turn = 0; turn < 10; turn++) yield* chain.balance(Address.zero)
      expect(node.seen.length).toBe(10)
      expect(node.connections()).toBe(1)
    })
  )

  it.live("connections to one host are bounded, and all calls succeed", () =>
    Effect.gen(function* () {
      let most = 0
      const node: HostileNode = yield* http((response, body) => {
        most = Math.max(most, node.open())
        setImmediate(() => honest(response, body, () => "0x1"))
      })
      const chain = yield* connect(node, { http: { connectionsPerHost: 3 }, batches: { batchCalls: 1 } })
      const answers = yield* balances(chain, 40)
      expect(answers.every(({ _tag }) => _tag === "Success")).toBe(true)
      expect(most).toBeLessThanOrEqual(3)
      expect(node.connections()).toBeLessThanOrEqual(3)
    })
  )

  it.live("all connections end with the scope; pending and later calls fail", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const node = yield* http(() => Deferred.doneUnsafe(arrived, Effect.void))
      const scope = yield* Scope.make()
      const rpc = yield* Scope.provide(EthersChainRpc.make({ egress: { allowLoopback: true } }), scope)
      const chain = yield* rpc.connect(node.url, acme)
      const waiting = yield* Effect.forkChild(
        Effect.all(
          [reasonOf(chain.balance(Address.zero), node), reasonOf(chain.sendRawTransaction(raw), node)],
          {
            concurrency: "unbounded"
          }
        )
      )
      yield* Deferred.await(arrived)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(waiting)).toEqual(["unreachable", "unreachable"])
      yield* Effect.promise(node.drained)
      expect(yield* reasonOf(chain.balance(Address.zero), node)).toBe("unreachable")
      expect(yield* reasonOf(chain.chainId, node)).toBe("unreachable")
      expect(yield* reasonOf(chain.sendRawTransaction(raw), node)).toBe("unreachable")
    })
  )

  it.live("concurrent equal calls are sent once, and every caller gets the reply", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) =>
        honest(response, body, ({ params }) => `0x${String(params[0]).slice(-2)}`)
      )
      const chain = yield* connect(node)
      const ask = Effect.all([balances(chain, 3), balances(chain, 3), chain.balance(five)], {
        concurrency: "unbounded"
      })
      const three = [0n, 1n, 2n].map(Result.succeed)
      expect(yield* ask).toEqual([three, three, 5n])
      expect(node.seen.map(({ body }) => callsOf(body).length)).toEqual([4])
      // Later it may be something else.
      yield* ask
      expect(node.seen.map(({ body }) => callsOf(body).length)).toEqual([4, 4])
    })
  )

  it.live("calls without waiting callers are not sent, calls with one are", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => honest(response, body, () => "0x7"))
      const chain = yield* connect(node)
      const [both, alone] = [Address.zero, Address.unsafe(`0x${"01".padStart(40, "0")}`)]
      const [stays, leaves, leavesAlone] = yield* Effect.all(
        [both, both, alone].map((address) => Effect.forkChild(chain.balance(address)))
      )
      const kept = yield* Effect.forkChild(Effect.uninterruptible(chain.balance(five)))
      yield* Effect.yieldNow
      for (const fiber of [leaves, leavesAlone])
        if (fiber !== undefined) yield* Effect.sync(() => fiber.interruptUnsafe())
      yield* Effect.sync(() => kept.interruptUnsafe())
      if (stays !== undefined) expect(yield* Fiber.join(stays)).toBe(7n)
      const asked = node.seen.flatMap(({ body }) => callsOf(body).map(({ params }) => params[0]))
      expect(asked).toEqual([both, five])
    })
  )

  it.live("an interrupted caller does not cancel another caller's reply", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const node = yield* http((response, body) => {
        Deferred.doneUnsafe(arrived, Effect.void)
        Effect.runFork(
          Effect.andThen(
            Deferred.await(go),
            Effect.sync(() => honest(response, body, () => "0x9"))
          )
        )
      })
      const chain = yield* connect(node, { http: {} })
      const [first, second, third] = yield* Effect.all([
        Effect.forkChild(chain.balance(Address.zero)),
        Effect.forkChild(chain.chainId),
        Effect.forkChild(chain.chainId)
      ])
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(first)
      yield* Fiber.interrupt(second)
      yield* Deferred.succeed(go, undefined)
      expect(yield* Fiber.join(third)).toBe(9n)
      expect(yield* chain.chainId).toBe(9n)
      expect(node.seen.length).toBe(1)
    })
  )

  it.live("a failed chain id is read again", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body, turn) =>
        honest(response, body, () => (turn === 0 ? "nonsense" : "0x1"))
      )
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
      expect(yield* chain.chainId).toBe(1n)
    })
  )
})

describe("clients", () => {
  it.live("clients are cached by account and URL, except the least used ones", () =>
    Effect.gen(function* () {
      const rpc = yield* EthersChainRpc.make({ ...options, clients: 3 })
      const at = (path: string, by: NamedBy = acme) => rpc.connect(`http://127.0.0.1:1/${path}`, by)
      const a = yield* at("a")
      expect(yield* at("a#part")).toBe(a)
      expect(yield* at("a", "operator")).not.toBe(a)
      expect(yield* at("a", bolt)).not.toBe(a)
      expect(yield* at("a")).toBe(a)
      yield* at("b")
      expect(yield* at("a")).toBe(a)
      yield* at("c")
      yield* at("d")
      yield* at("e")
      expect(yield* at("a")).not.toBe(a)
    })
  )

  it.live("clients of two accounts share no connection, clients of one account do", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => honest(response, body, () => "0x1"))
      const rpc = yield* EthersChainRpc.make(options)
      for (const [by, connections] of [
        [acme, 1],
        [acme, 1],
        [bolt, 2],
        ["operator", 3],
        [acme, 3]
      ] as const) {
        const chain = yield* rpc.connect(`${node.url}?${connections}`, by)
        yield* chain.balance(Address.zero)
        expect(node.connections()).toBe(connections)
      }
    })
  )
})
