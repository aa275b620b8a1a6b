import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { AbiCoder } from "ethers"
import * as ChainFacts from "../../../../src/application/chain/ChainFacts.js"
import {
  type Call,
  type CallResult,
  type ChainClient,
  ChainRpcError,
  callOf,
  type StateOverride
} from "../../../../src/application/ports/chain/ChainRpc.js"
import * as SharedLooks from "../../../../src/application/prepare/estimate/SharedLooks.js"
import * as LensBatch from "../../../../src/domain/erc4337/gas/LensBatch.js"
import type { Address } from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import { test } from "../../../support/Test.js"

const overrides: ReadonlyMap<Address, StateOverride> = new Map()
const hex = (n: number) => Hex.unsafe(`0x${n.toString(16).padStart(2, "0")}`)

/** Answers to the looks of one call, as the lens gives them. */
const answerOf = (answers: ReadonlyArray<string>): Hex.Hex =>
  Hex.unsafe(AbiCoder.defaultAbiCoder().encode(["bytes[]"], [answers]))

interface Asked {
  readonly call: Call | (() => Call)
  readonly answer: (result: Effect.Effect<CallResult, ChainRpcError>) => void
}

/** A node whose calls wait until the test answers them. */
const nodeOf = Effect.map(Monitor.node("any"), ({ chain: any }) => {
  const asked: Array<Asked> = []
  const chain: ChainClient = {
    ...any,
    call: (call) => Effect.callback((answer) => void asked.push({ call, answer }))
  }
  /** The calldata of the calls that wait, in order. */
  const sent = () => asked.map(({ call }) => callOf(call).data)
  const answer = (place: number, result: Effect.Effect<CallResult, ChainRpcError>) =>
    Effect.sync(() => asked[place]?.answer(result))
  return { chain, sent, answer }
})

const right = (data: Hex.Hex) => Effect.succeed({ success: true, data })
const failure = (reason: ChainRpcError["reason"]) =>
  Effect.fail(new ChainRpcError({ reason, origin: "http://node", message: "http://node: no" }))

const world = Effect.map(nodeOf, (node) => {
  const facts = ChainFacts.make()
  const ask = (data: Hex.Hex, other: Partial<SharedLooks.Look> = {}) =>
    Effect.forkChild(
      SharedLooks.ask(facts, {
        chain: node.chain,
        accountId: Make.accountId("one"),
        from: Make.address(1),
        entryPoint: Make.address(2),
        overrides,
        data,
        ...other
      })
    )
  /** Asks all of these at one moment. */
  const askAll = (...asks: ReadonlyArray<ReturnType<typeof ask>>) =>
    Effect.tap(Effect.all(asks), Effect.repeat(Effect.yieldNow, { times: 3 }))
  return { ...node, ask, askAll }
})

describe("looks of one moment", () => {
  test("leave as one call, and each gets its own answer", function* () {
    const { answer, ask, askAll, sent } = yield* world
    const fibers = yield* askAll(ask(hex(1)), ask(hex(2)), ask(hex(3)))
    expect(sent()).toEqual([LensBatch.encode([hex(1), hex(2), hex(3)])])
    yield* answer(0, right(answerOf([hex(11), hex(12), hex(13)])))
    expect(yield* Fiber.joinAll(fibers)).toEqual(
      [11, 12, 13].map((n) => ({ success: true, data: hex(n), isShared: true }))
    )
  })

  test("one without company is asked as it is", function* () {
    const { answer, ask, askAll, sent } = yield* world
    const [fiber] = yield* askAll(ask(hex(1)))
    expect(sent()).toEqual([hex(1)])
    yield* answer(0, Effect.succeed({ success: false, data: hex(9) }))
    expect(yield* Fiber.join(fiber ?? Effect.runFork(Effect.never))).toEqual({
      success: false,
      data: hex(9),
      isShared: false
    })
  })

  test("what comes after the call has left is in the next", function* () {
    const { ask, askAll, sent } = yield* world
    yield* askAll(ask(hex(1)), ask(hex(2)))
    expect(sent()).toEqual([LensBatch.encode([hex(1), hex(2)])])
    yield* askAll(ask(hex(3)))
    expect(sent()).toEqual([LensBatch.encode([hex(1), hex(2)]), hex(3)])
  })

  it.effect.each<readonly [string, Partial<SharedLooks.Look>]>([
    ["account", { accountId: Make.accountId("two") }],
    ["submitter", { from: Make.address(7) }],
    ["EntryPoint", { entryPoint: Make.address(7) }],
    ["state", { overrides: new Map([[Make.address(1), { balance: 1n }]]) }]
  ])("those of another %s are asked apart", ([, other]) =>
    Effect.gen(function* () {
      const { ask, askAll, sent } = yield* world
      yield* askAll(ask(hex(1)), ask(hex(2), other), ask(hex(3), other))
      expect(sent()).toEqual([hex(1), LensBatch.encode([hex(2), hex(3)])])
    })
  )

  test("those of another node are asked apart", function* () {
    const { ask, askAll, sent } = yield* world
    const other = yield* nodeOf
    yield* askAll(ask(hex(1)), ask(hex(2), { chain: other.chain }), ask(hex(3)))
    expect(sent()).toEqual([LensBatch.encode([hex(1), hex(3)])])
    expect(other.sent()).toEqual([hex(2)])
  })

  test("more than 32, or more than 128 KiB, are several calls", function* () {
    const many = yield* world
    yield* many.askAll(...Array.from({ length: 40 }, (_, n) => many.ask(hex(n))))
    expect(many.sent()).toEqual([
      LensBatch.encode(Array.from({ length: 32 }, (_, n) => hex(n))),
      LensBatch.encode(Array.from({ length: 8 }, (_, n) => hex(32 + n)))
    ])
    const long = yield* world
    const data = Hex.unsafe(`0x${"ab".repeat(60_000)}`)
    yield* long.askAll(...Array.from({ length: 3 }, () => long.ask(data)))
    expect(long.sent()).toEqual([LensBatch.encode([data, data]), data])
  })

  test("go on when the one that was first is given up", function* () {
    const { answer, ask, askAll, sent } = yield* world
    const [first, second] = yield* askAll(ask(hex(1)), ask(hex(2)))
    if (first === undefined || second === undefined) throw new Error("two fibers")
    expect(Exit.hasInterrupts(yield* Effect.andThen(Fiber.interrupt(first), Fiber.await(first)))).toBe(true)
    expect(sent()).toEqual([LensBatch.encode([hex(1), hex(2)])])
    yield* answer(0, right(answerOf([hex(11), hex(12)])))
    expect((yield* Fiber.join(second)).data).toBe(hex(12))
  })

  it.effect.each<readonly [string, Effect.Effect<CallResult, ChainRpcError>]>([
    ["reverts", Effect.succeed({ success: false, data: Hex.empty })],
    ["answers nonsense", right(hex(1))],
    ["answers fewer", right(answerOf([hex(1)]))],
    ["is refused", failure("rejected")],
    ["has an answer that is too large", failure("notAnRpc")]
  ])("are asked apart where their call %s", ([, result]) =>
    Effect.gen(function* () {
      const { answer, ask, askAll, sent } = yield* world
      const fibers = yield* askAll(ask(hex(1)), ask(hex(2)))
      yield* answer(0, result)
      yield* Effect.repeat(Effect.yieldNow, { times: 3 })
      expect(sent().slice(1)).toEqual([hex(1), hex(2)])
      yield* answer(1, right(hex(11)))
      yield* answer(2, right(hex(12)))
      expect(yield* Fiber.joinAll(fibers)).toEqual(
        [11, 12].map((n) => ({ success: true, data: hex(n), isShared: false }))
      )
    })
  )

  test("all fail at once where the node cannot be asked", function* () {
    const { answer, ask, askAll, sent } = yield* world
    const fibers = yield* askAll(ask(hex(1)), ask(hex(2)))
    yield* answer(0, failure("unreachable"))
    for (const fiber of fibers) expect((yield* Effect.flip(Fiber.join(fiber))).reason).toBe("unreachable")
    expect(sent()).toHaveLength(1)
  })
})
